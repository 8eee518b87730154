// The link to a replica's keeper: one stream after another, each begun with a claim.
#include "server/process/replica_link.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/clock.hpp"
#include "server/process/access.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

/// Pause between two streams, so that a keeper that cannot follow is not dialled in a busy loop.
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

ReplicaLink::ReplicaLink(streams::Streams& streams, Keeper keeper, syncopate::Log log, ServerTables& tables,
                         Events events)
    : streams_(streams),
      keeper_(std::move(keeper)),
      log_(std::move(log)),
      process_(drawn_process()),
      tables_(tables),
      events_(std::move(events)) {}

void ReplicaLink::begin() {
  thread_ = std::jthread([this] { run(); });
}

void ReplicaLink::end() {
  state_.change([](State& state) { state.is_over = true; });
  if (thread_.joinable()) thread_.join();
}

void ReplicaLink::forward(const Record& record) {
  const auto stream = state_.with([](const State& state) { return state.stream; });
  if (!stream) return;
  each_part(record, [&](Relayed part) { stream->send(0, head_of(part), std::move(part.message.body)); });
}

void ReplicaLink::run() {
  try {
    const auto is_over = [](const State& state) { return state.is_over; };
    while (serve_once() && !state_.wait_until(base::SteadyClock().now() + kPause, is_over, [](State&) {})) {
    }
  } catch (...) {  // also of a component of the catalogue, or std::bad_alloc
    events_.failed(std::current_exception());
  }
}

/// Dials once, and serves the stream to its end. Only this function resumes and pauses the replica, so that nothing is
/// forwarded on a stream before the keeper has answered. Returns whether to continue.
bool ReplicaLink::serve_once() {
  tables_.pause();
  state_.change([](State& state) { state = {.is_over = state.is_over}; });
  const auto reader = std::make_shared<RecordReader>(tables_.memory_bytes());
  std::shared_ptr<streams::Stream> stream;
  try {
    stream = streams_.dial(
        {.address = keeper_.address, .server = static_cast<std::int32_t>(keeper_.server), .patience = kAttempt},
        {.received = [this, reader](Payload bytes) { receive(*reader, std::move(bytes)); },
         .ended = [this](const streams::Ending& how) { state_.change([&](State& state) { state.ending = how; }); }});
  } catch (const PeerLost&) {
    return state_.with([](const State& state) { return !state.is_over; });
  }
  const RelayKind claim = tables_.is_empty() ? RelayKind::claim_empty : RelayKind::claim;
  stream->send(0, head_of(Relayed{.kind = claim, .number = process_}), {});
  std::optional<std::uint64_t> holds;
  state_.wait_until(
      base::kNever, [](const State& state) { return state.holds || state.ending || state.is_over; },
      [&](State& state) {
        holds = state.holds;
        state.stream = stream;
      });
  if (holds) {
    tables_.follow(*holds);
    if (!std::exchange(has_joined_, true)) events_.joined();
  }
  State end;
  state_.wait_until(
      base::kNever, [](const State& state) { return state.ending || state.is_over; },
      [&](State& state) {
        state.stream.reset();
        end = state;
      });
  if (end.is_over) stream->close({});
  stream->end();  // others may hold it a moment longer
  if (end.refusal) report(*end.refusal);
  if (end.ending) consider(*end.ending);
  return !end.is_over;
}

/// Runs on: the streams' thread.
void ReplicaLink::receive(RecordReader& reader, Payload bytes) {
  Relayed relayed = relayed_of(std::move(bytes));
  const bool is_answered = state_.with([](const State& state) { return state.holds.has_value(); });
  if (relayed.kind == RelayKind::replaced || relayed.kind == RelayKind::occupied)
    return state_.change([&](State& state) { state.refusal = relayed.kind; });
  if (relayed.kind == RelayKind::holds) {
    if (is_answered) return tables_.acknowledge(relayed.number);
    return state_.change([&](State& state) { state.holds = relayed.number; });
  }
  if (relayed.kind != RelayKind::record || is_answered) throw Corrupt("unexpected message from a replica's keeper");
  Record record;
  if (reader.take(std::move(relayed), record)) static_cast<void>(tables_.apply(record));
}

/// Does not throw for an end that another stream can recover from: the keeper was lost, or could not follow.
void ReplicaLink::consider(const streams::Ending& ending) const {
  if (!ending.failure) return;
  if (*ending.failure == ErrorKind::misuse || *ending.failure == ErrorKind::unauthorized)
    raise_error(*ending.failure, ending.reason);
  log_.write(LogLevel::warning, fmt::format("server {}: its replica at {} is out of reach: {}", keeper_.of,
                                            keeper_.address, ending.reason));
}

void ReplicaLink::report(RelayKind refusal) const {
  if (refusal == RelayKind::replaced)
    throw Mismatch(
        fmt::format("another process took the place of server {} while this one was silent or disconnected, and "
                    "has its tables; only one of the two may go on",
                    keeper_.of));
  throw Mismatch(
      fmt::format("server {} is another live process, whose replica is at {}; give each server of the job its own "
                  "--index, or end that process first",
                  keeper_.of, keeper_.address));
}

}  // namespace syncopate::server
