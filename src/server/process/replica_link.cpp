// The link to a replica's keeper: one stream after another, each begun with a claim.
#include "server/process/replica_link.hpp"

#include <fmt/format.h>

#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

/// The least time between two dials: a keeper that cannot follow is not dialled in a busy loop.
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

ReplicaLink::ReplicaLink(Dialler dial, Ends ends, syncopate::Log log, std::shared_ptr<const base::Clock> clock,
                         ServerTables& tables, Events events)
    : dial_(std::move(dial)),
      ends_(std::move(ends)),
      log_(std::move(log)),
      clock_(std::move(clock)),
      tables_(tables),
      events_(std::move(events)) {}

ReplicaLink::Phase ReplicaLink::phase() const {
  return state_.with([](const State& state) { return state.phase; });
}

/// After `pause` the tables forward nothing until `ServerTables::follow`: a record that another thread forwarded before
/// it would overtake those that the keeper lacks.
base::Time ReplicaLink::turn() {
  std::vector<std::shared_ptr<streams::Stream>> retired;
  bool is_due = false;
  base::Time next = base::kNever;
  state_.with([&](State& state) {
    retired.swap(state.retired);
    if (state.phase != Phase::away) return;
    const base::Time now = clock_->now();
    is_due = state.next <= now;
    if (!is_due) {
      next = state.next;
      return;
    }
    state.phase = Phase::dialling;
    state.next = now + kPause;
  });
  for (const auto& stream : retired) stream->end();
  if (!is_due) return next;
  tables_.pause();
  dial_({.reached = [this](std::unique_ptr<streams::Stream> stream) { return reach(std::move(stream)); },
         .failed = [this](const std::exception_ptr& why) { miss(why); }});
  return next;
}

void ReplicaLink::end() {
  State last;
  state_.with([&](State& state) { last = std::exchange(state, {.phase = Phase::over}); });
  if (last.stream) {
    last.stream->close({});
    last.stream->end();
  }
  for (const auto& stream : last.retired) stream->end();
}

void ReplicaLink::forward(const Record& record) {
  const auto stream = state_.with([](const State& state) {
    return state.phase == Phase::following ? state.stream : std::shared_ptr<streams::Stream>();
  });
  if (!stream) return;
  each_part(record, [&](const RecordPart& part) { send(*stream, 0, RelayMessage(part)); });
}

streams::StreamEvents ReplicaLink::reach(std::shared_ptr<streams::Stream> stream) {
  const bool goes_on = state_.with([&](State& state) {
    if (state.phase == Phase::over) {
      state.retired.push_back(stream);
      return false;
    }
    state.phase = Phase::claiming;
    state.stream = stream;
    return true;
  });
  if (!goes_on) {
    events_.due();
    return {.received = [](Payload) {}, .ended = [](const streams::Ending&) {}};
  }
  send(*stream, 0, RelayMessage(Claim{.process = ends_.process, .is_empty = tables_.is_empty()}));
  const auto reader = std::make_shared<RecordReader>(tables_.memory_bytes());
  return {.received = [this, reader](Payload bytes) { receive(*reader, std::move(bytes)); },
          .ended = [this](const streams::Ending& how) { lose(how); }};
}

/// A keeper that does not answer is dialled again; that it refuses this process is final.
void ReplicaLink::miss(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const PeerLost&) {
    state_.with([&](State& state) {
      if (state.phase != Phase::over) state.phase = Phase::away;
    });
    events_.due();
  } catch (...) {
    fail(why);
  }
}

void ReplicaLink::receive(RecordReader& reader, Payload bytes) {
  RelayMessage message = relay_message_of(std::move(bytes));
  const Phase now = phase();
  if (now == Phase::over) return;
  const bool is_answered = now == Phase::following;
  if (const auto* const why = std::get_if<Denied>(&message)) return fail(std::make_exception_ptr(refusal(*why)));
  if (const auto* const holds = std::get_if<Holds>(&message))
    return is_answered ? tables_.acknowledge(holds->sequence) : follow(holds->sequence);
  auto* const part = std::get_if<RecordPart>(&message);
  if (part == nullptr || is_answered) throw Corrupt("unexpected message from a replica's keeper");
  Record record;
  if (reader.add(std::move(*part), record)) static_cast<void>(tables_.apply(record));
}

/// The keeper has answered the claim: it has what `kept` counts.
void ReplicaLink::follow(std::uint64_t kept) {
  state_.with([](State& state) {
    if (state.phase == Phase::claiming) state.phase = Phase::following;
  });
  try {
    tables_.follow(kept);
    if (!std::exchange(has_joined_, true)) events_.joined();
  } catch (...) {  // of a component of the catalogue, or std::bad_alloc
    fail(std::current_exception());
  }
}

/// The keeper was lost, or could not follow: another stream may recover from it, unless this process is refused.
void ReplicaLink::lose(const streams::Ending& ending) {
  const bool goes_on = state_.with([&](State& state) {
    if (state.stream) state.retired.push_back(std::move(state.stream));
    if (state.phase == Phase::over) return false;
    state.phase = Phase::away;
    return true;
  });
  events_.due();
  if (!goes_on || !ending.failure) return;
  if (*ending.failure == ErrorKind::misuse || *ending.failure == ErrorKind::unauthorized) try {
      raise_error(*ending.failure, ending.reason);
    } catch (...) {
      return fail(std::current_exception());
    }
  log_.write(LogLevel::warning, fmt::format("server {}: its replica at {} is out of reach: {}", ends_.server,
                                            ends_.keeper, ending.reason));
}

void ReplicaLink::fail(std::exception_ptr why) {
  const bool is_first = state_.with([](State& state) {
    if (state.stream) state.retired.push_back(std::move(state.stream));
    return std::exchange(state.phase, Phase::over) != Phase::over;
  });
  events_.due();
  if (is_first) events_.failed(std::move(why));
}

Mismatch ReplicaLink::refusal(const Denied& why) const {
  if (why.was_replaced)
    return Mismatch(
        fmt::format("another process took the place of server {} while this one was silent or disconnected, and "
                    "has its tables; only one of the two may go on",
                    ends_.server));
  return Mismatch(
      fmt::format("server {} is another live process, whose replica is at {}; give each server of the job its own "
                  "--index, or end that process first",
                  ends_.server, ends_.keeper));
}

}  // namespace syncopate::server
