// Session: the common half of both ends of a stream, between a caller's Stream and the gRPC call that carries it.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/guarded.hpp"
#include "server/rpc/outbox.hpp"
#include "server/rpc/stream.hpp"

namespace syncopate::server::rpc {

/// One gRPC call. gRPC requires at most one read and one write at a time, and none after the call's end. Reads are
/// begun only by `open` and by the reaction to the previous one, so they need no lock; writes and the end begin under
/// the lock. gRPC runs no reaction inside the function that begins an operation, so the lock may be held there.
///
/// The call ends when the other end's farewell was read, when this end's was written, when a read or write failed, or
/// when it is cancelled; `on_over` is its last reaction.
///
/// Silence: time is counted in ticks, kTicks per silence. An end that has written nothing since the last tick sends a
/// heartbeat. An end that waits for a message and gets none for kTicks ticks cuts the other end off; so does an end
/// that knows how the stream ends and waits that long for the call's end. Time in which this process was stopped counts
/// as one tick. Each stream has a thread for its clock, because gRPC runs alarms on threads that a full socket blocks
/// for 10 s and more. gRPC's keepalive is not sufficient: its clock starts when the ping has left, and no ping leaves
/// through a full unix socket.
///
/// On a busy machine a call that was cancelled behind such a socket may take long to end, or never end: after kTicks
/// more ticks the clock reports the end instead.
class Session {
 public:
  Session(std::string address, base::Duration silence) : address_(std::move(address)), silence_(silence) {}
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void send(std::uint64_t priority, Outgoing message);
  void close(std::string_view error);
  /// Does the work of ~Stream.
  void leave();
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  /// The other end, as errors name it: "server 2 (10.0.0.5:7000)".
  [[nodiscard]] std::string other_end() const;

 protected:
  /// Records that the other end has proved to be `peer`.
  void meet(std::string peer, base::Duration silence) {
    peer_ = std::move(peer);
    tick_ = std::min(silence, silence_) / kTicks;
  }
  /// Passes the stream to `taker`, which returns its callbacks, and opens it. The Stream may be destroyed by then.
  void offer(const std::function<StreamEvents()>& taker);
  /// Begins to read. Called once.
  void open(StreamEvents events);
  /// Begins no more writes.
  void seal();
  // Reactions, on gRPC's threads.
  void on_read(bool is_right);
  void on_write(bool is_right);
  /// Reports the end: the recorded one, or in order if this end's farewell was written and `is_confirmed`, or else
  /// `lost`. The last reaction.
  void on_over(bool is_confirmed, const Ending& lost);

 private:
  static constexpr int kTicks = 5;

  struct State {
    Outbox outbox;
    grpc::ByteBuffer outgoing;            ///< while `is_writing`
    std::optional<std::string> farewell;  ///< the text; set when this end closes
    std::optional<Ending> ending;         ///< how the stream ended, if that is known before the call is over
    bool is_writing = false;
    bool is_last = false;     ///< `outgoing` is or was the farewell
    bool is_written = false;  ///< the farewell has been written
    bool is_sealed = false;
    bool is_reading = false;    ///< a read is in progress
    bool has_written = true;    ///< a write has begun since the last tick
    int quiet_ticks = 0;        ///< while `is_reading`: ticks since its beginning
    int ending_ticks = 0;       ///< ticks since `ending` is known
    bool is_over = false;       ///< the call is over
    bool is_receiving = false;  ///< `received` runs
    bool is_telling = false;    ///< `ended` runs or has returned
    bool is_told = false;       ///< it has returned: no callback comes after it
    bool is_offered = false;    ///< `offer` runs: gRPC does not have the call yet, so it cannot end
    bool is_dropped = false;    ///< the Stream was destroyed in that time
  };

  virtual void begin_read(grpc::ByteBuffer* into) = 0;
  virtual void begin_write(const grpc::ByteBuffer* from) = 0;
  virtual void finish() = 0;            ///< lets the call end: no more writes will come
  virtual void cancel() noexcept = 0;   ///< ends the call at once
  virtual void release() noexcept = 0;  ///< the call is over: releases what kept the session alive for gRPC

  void read();
  void start_clock(State& state);
  void run_clock();
  /// Returns whether the call is given up.
  [[nodiscard]] bool tick(State& state);
  /// Calls `ended` unless it was called before; used by the call's end and by the clock.
  void tell(const Ending& ending);
  void write(State& state, grpc::ByteBuffer message);
  void write_next(State& state);
  void seal(State& state);
  void receive(const grpc::ByteBuffer& buffer);
  void take_farewell(base::ConstBytes text);
  void fail(ErrorKind kind, const std::string& what);

  const std::string address_;
  const base::Duration silence_;
  std::string peer_;
  base::Duration tick_{};
  StreamEvents events_;
  grpc::ByteBuffer incoming_;
  std::atomic<int> users_{1};  ///< the call and the clock
  base::Guarded<State> state_;
  /// The last act of the call and of the clock: the session keeps itself alive until both are over.
  void part();
};

/// The Stream of a session.
[[nodiscard]] std::unique_ptr<Stream> stream_of(std::shared_ptr<Session> session);

}  // namespace syncopate::server::rpc
