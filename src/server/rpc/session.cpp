// Session: the common half of both ends of a stream, between a caller's Stream and the gRPC call that carries it.
#include "server/rpc/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/fork.hpp"
#include "base/require.hpp"
#include "server/rpc/message.hpp"

namespace syncopate::server::rpc {

namespace {

class Handle final : public Stream {
 public:
  explicit Handle(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~Handle() override {
    if (process_.is_inherited()) {  // gRPC's threads are the parent's: its objects cannot be destroyed here
      static_cast<void>(new std::shared_ptr<Session>(std::move(session_)));
    } else {
      session_->leave();
    }
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void end() override {
    if (!process_.is_inherited()) session_->leave();
  }
  void send(std::uint64_t priority, base::ConstBytes head, Payload body) override {
    process_.require("a stream to a parameter server");
    base::require(head.size() <= kMostHeadBytes && body.bytes.size() <= kMostBodyBytes,
                  "a message has a head of {} bytes and a body of {}; allowed: {} and {}", head.size(),
                  body.bytes.size(), kMostHeadBytes, kMostBodyBytes);
    base::require(head.size() + body.bytes.size() > 0, "a message has no bytes; allowed: 1 byte or more");
    Outgoing message{.head_bytes = head.size(), .body = std::move(body)};
    std::ranges::copy(head, message.head.begin());
    session_->send(priority, std::move(message));
  }
  void close(std::string_view error) override {
    process_.require("a stream to a parameter server");
    session_->close(error);
  }
  [[nodiscard]] const std::string& peer() const noexcept override { return session_->peer(); }

 private:
  std::shared_ptr<Session> session_;
  base::OwnProcess process_;
};

}  // namespace

std::unique_ptr<Stream> stream_of(std::shared_ptr<Session> session) {
  return std::make_unique<Handle>(std::move(session));
}

std::string Session::other_end() const { return fmt::format("{} ({})", peer_, address_); }

void Session::offer(const std::function<StreamEvents()>& taker) {
  state_.with([](State& state) { state.is_offered = true; });
  StreamEvents events = taker();
  const bool is_dropped = state_.with([](State& state) {
    state.is_offered = false;
    return state.is_dropped;
  });
  if (is_dropped) close("it was refused");
  open(is_dropped ? StreamEvents{} : std::move(events));
}

void Session::open(StreamEvents events) {
  state_.with([&](State& state) {
    events_ = std::move(events);
    start_clock(state);
  });
  read();
}

void Session::send(std::uint64_t priority, Outgoing message) {
  state_.with([&](State& state) {
    if (state.farewell || state.is_sealed) return;
    state.outbox.push(priority, std::move(message));
    write_next(state);
  });
}

void Session::close(std::string_view error) {
  state_.with([&](State& state) {
    if (state.farewell) return;
    if (!error.empty()) state.outbox.clear();
    state.farewell = error;
    write_next(state);
  });
}

void Session::leave() {
  const auto is_told = [](const State& state) { return state.is_told; };
  const auto nothing = [](const State&) {};
  const bool is_dropped = state_.with([](State& state) { return state.is_dropped = state.is_offered; });
  if (is_dropped) return;
  const bool is_closed = state_.with([](State& state) { return state.farewell.has_value(); });
  if (is_closed && state_.wait_until(std::chrono::steady_clock::now() + silence_, is_told, nothing)) return;
  state_.with([&](State& state) {
    if (!state.is_over) cancel();
  });
  state_.wait_until(base::kNever, is_told, nothing);
}

void Session::write_next(State& state) {
  if (state.is_writing || state.is_sealed || state.is_last) return;
  if (!state.outbox.empty()) return write(state, pack(state.outbox.pop()));
  if (!state.farewell) return;
  state.is_last = true;
  write(state, pack_farewell(*state.farewell));
}

void Session::write(State& state, grpc::ByteBuffer message) {
  state.outgoing.Swap(&message);
  state.is_writing = state.has_written = true;
  begin_write(&state.outgoing);
}

void Session::on_write(bool is_right) {
  state_.with([&](State& state) {
    state.is_writing = false;
    state.outgoing.Clear();
    state.is_written = is_right && state.is_last;
    if (!is_right || state.is_last) return seal(state);
    write_next(state);
  });
}

void Session::seal() {
  state_.with([&](State& state) { seal(state); });
}

void Session::seal(State& state) {
  state.outbox.clear();
  if (std::exchange(state.is_sealed, true)) return;
  finish();
}

void Session::read() {
  state_.with([](State& state) {
    state.is_reading = true;
    state.quiet_ticks = 0;
  });
  begin_read(&incoming_);
}

void Session::on_read(bool is_right) {
  if (!is_right) return seal();
  const bool is_ending = state_.with([](State& state) {
    state.is_reading = false;
    state.is_receiving = !state.ending.has_value();
    return state.ending.has_value();
  });
  if (!is_ending) receive(incoming_);
  state_.with([](State& state) { state.is_receiving = false; });
  incoming_.Clear();
  read();  // to the end: unread messages keep the call from ending
}

void Session::receive(const grpc::ByteBuffer& buffer) {
  auto incoming = unpack(buffer);
  if (!incoming)
    return fail(ErrorKind::corrupt, fmt::format("sent {} bytes that are not a message; allowed: a head of {} and a "
                                                "body of {}",
                                                buffer.Length(), kMostHeadBytes, kMostBodyBytes));
  if (incoming->kind == Kind::farewell) return take_farewell(incoming->payload.bytes);
  if (incoming->kind == Kind::heartbeat) return;
  try {
    if (events_.received) events_.received(std::move(incoming->payload));
  } catch (const Error& error) {
    fail(error.kind(), error.what());
  } catch (const std::exception& error) {
    fail(ErrorKind::system_failure, error.what());
  }
}

void Session::take_farewell(base::ConstBytes text) {
  const std::string error = readable(text);
  Ending ending{{}, fmt::format("{} closed the stream", other_end())};
  if (!error.empty()) ending = {ErrorKind::remote_failure, fmt::format("{} closed the stream: {}", other_end(), error)};
  state_.with([&](State& state) {
    state.ending = std::move(ending);
    seal(state);
  });
}

/// Handles an error of the other end or of this end's program: ends the stream and sends the other end the reason.
void Session::fail(ErrorKind kind, const std::string& what) {
  state_.with([&](State& state) {
    state.ending = Ending{kind, fmt::format("{}: {}", other_end(), what)};
    state.outbox.clear();
    if (!state.farewell) state.farewell = what;
    write_next(state);
  });
}

void Session::on_over(bool is_confirmed, const Ending& lost) {
  Ending ending = state_.with([&](State& state) {
    state.is_over = true;
    state.outbox.clear();
    if (state.ending) return *state.ending;
    if (!state.is_written || !is_confirmed) return lost;
    return Ending{{}, fmt::format("this end closed the stream with {}", other_end())};
  });
  tell(ending);
  part();
}

void Session::tell(const Ending& ending) {
  const bool is_first = state_.with([](State& state) { return !std::exchange(state.is_telling, true); });
  if (!is_first) return;
  if (const auto ended = std::exchange(events_, {}).ended) ended(ending);
  state_.change([](State& state) { state.is_told = true; });
}

void Session::part() {
  if (--users_ == 0) release();
}

void Session::start_clock(State& state) {
  try {
    ++users_;
    std::thread([this] { run_clock(); }).detach();
  } catch (const std::system_error& error) {
    --users_;
    state.ending = Ending{ErrorKind::system_failure,
                          fmt::format("no thread for the stream with {}: {}", other_end(), error.what())};
    cancel();
  }
}

/// Body of the clock's thread.
void Session::run_clock() {
  const auto is_over = [](const State& state) { return state.is_over; };
  const auto nothing = [](const State&) {};
  std::optional<Ending> given_up;
  while (!given_up && !state_.wait_until(std::chrono::steady_clock::now() + tick_, is_over, nothing))
    state_.with([&](State& state) {
      if (!state.is_over && tick(state)) given_up = state.ending;
    });
  if (given_up) tell(*given_up);
  part();
}

bool Session::tick(State& state) {
  if (state.ending && ++state.ending_ticks >= kTicks) {
    cancel();
    return state.ending_ticks >= 2 * kTicks && !state.is_receiving;
  }
  if (state.is_reading && ++state.quiet_ticks >= kTicks) {
    if (!state.ending)
      state.ending = Ending{ErrorKind::peer_lost, fmt::format("{} is lost: it was silent for {} ms", other_end(),
                                                              kTicks * tick_ / std::chrono::milliseconds(1))};
    cancel();
    return false;
  }
  if (!std::exchange(state.has_written, false) && !state.is_writing && !state.is_sealed) write(state, pack_heartbeat());
  return false;
}

}  // namespace syncopate::server::rpc
