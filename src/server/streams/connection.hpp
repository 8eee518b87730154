// Connection: one stream over one connected channel: frames in and out, heartbeats, and how it ends.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/beat.hpp"
#include "base/mutex.hpp"
#include "server/streams/buffers.hpp"
#include "server/streams/frame.hpp"
#include "server/streams/outbox.hpp"
#include "server/streams/work_list.hpp"
#include "transport/socket/channel.hpp"

namespace syncopate::server::streams {

/// Any thread sends and closes. The thread that runs the loop reads, keeps time and ends it. A small message is written
/// by the thread that sends it, if nothing waits before it; all others by the loop.
///
/// An end closes by a close frame after its queue; the other end answers with a close frame of its own and nothing
/// else. The stream is over at an end that has read and written a close frame, so that no end that reads late loses
/// bytes by a reset of the connection. The states of sending and receiving only move forward.
///
/// Each beat is a tick: an end that has written nothing since the last one sends a heartbeat, and one that has read
/// nothing for the silence has lost the other.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  /// Shared by all connections of a loop.
  struct Shared {
    base::Duration silence{};
    std::shared_ptr<WorkList> work;
    std::shared_ptr<Buffers> buffers = std::make_shared<Buffers>();
  };

  /// `address`: of the other end, for texts.
  Connection(transport::socket::Channel channel, Identity peer, std::string address, Shared shared);

  // Any thread.
  void send(std::uint64_t priority, OutgoingFrame frame);
  void close(std::string_view error);
  void end();
  [[nodiscard]] const Identity& peer() const noexcept { return peer_; }
  /// The other end, as errors name it: "server 2 (10.0.0.5:7000)".
  [[nodiscard]] std::string other_end() const;

  // The loop.
  using Taker = std::function<StreamEvents(std::unique_ptr<Stream>)>;
  /// Sends the settings. `taker` receives the stream, and returns its callbacks. `is_offered`: the other end has
  /// dialled, and `taker` refuses it if it destroys the stream. If it refuses or throws, the other end receives the
  /// reason.
  void open(bool is_offered, const Taker& taker);
  /// Reads and writes what the kernel has and takes. Returns the bytes that it read.
  std::size_t advance();
  /// Call it at `next_tick` at the latest.
  void tick(base::Time now);
  /// Ends the stream on this side: at once, unless it was closed and its queue may still leave.
  void abandon(const Ending& ending);
  [[nodiscard]] base::Time next_tick() const noexcept { return beat_.next(); }
  /// Nothing more will happen; `close_channel` may be called.
  [[nodiscard]] bool is_over() const noexcept { return receiving_ == Receiving::over; }
  /// The events to wait for.
  [[nodiscard]] std::uint32_t wanted();
  [[nodiscard]] const transport::socket::Descriptor& socket() const noexcept SYNCOPATE_UNCHECKED {
    return channel_.socket();  // only the loop replaces it
  }
  void cut();  ///< ends the stream on this side at once
  void close_channel();

 private:
  enum class Sending : std::uint8_t {
    open,
    closing,  ///< the queue leaves, and no message is added; `close_text_` is set
    closed,   ///< the close frame is in `leaving_`, or has left
    broken    ///< nothing is written any more
  };
  enum class Receiving : std::uint8_t {
    settings,  ///< the other end's first frame is to come
    open,
    failed,  ///< the program has the reason; further bytes are dropped, and the other end's end is awaited
    closed,  ///< the other end's close frame has come, and the program has the reason
    over     ///< nothing more happens
  };
  enum class Owner : std::uint8_t {
    offered,  ///< `open` runs
    holds,
    gave_up  ///< `end` was called
  };
  void go_on(Sending to) SYNCOPATE_REQUIRES(mutex_);
  void go_on(Receiving to);
  [[nodiscard]] bool has_reported() const noexcept { return receiving_ >= Receiving::failed; }

  // Sending.
  void write_next() SYNCOPATE_REQUIRES(mutex_);
  void refill() SYNCOPATE_REQUIRES(mutex_);
  void wrote(std::size_t bytes) SYNCOPATE_REQUIRES(mutex_);
  void push(FrameKind kind, base::ConstBytes payload) SYNCOPATE_REQUIRES(mutex_);
  void begin_close(std::string_view text) SYNCOPATE_REQUIRES(mutex_);
  void drop_queue() SYNCOPATE_REQUIRES(mutex_);
  void release_written();
  // Reading.
  std::size_t pull();
  [[nodiscard]] transport::socket::Moved read_once();
  void take_frames();
  void start_frame();
  void finish_frame();
  void read_settings();
  void read_close();
  void deliver(Payload message);
  void announce();
  // Ending.
  void fail(ErrorKind kind, const std::string& what);
  void lose(const transport::socket::Moved& moved);
  void report(Receiving as, Ending ending);
  void settle();

  const Identity peer_;
  const std::string address_;
  const Shared shared_;

  base::Mutex mutex_;
  /// Reads need the lock only under TLS.
  transport::socket::Channel channel_ SYNCOPATE_GUARDED_BY(mutex_);
  const bool is_encrypted_;
  Outbox waiting_ SYNCOPATE_GUARDED_BY(mutex_);
  std::deque<OutgoingFrame> leaving_ SYNCOPATE_GUARDED_BY(mutex_);  ///< in the order in which they leave
  std::size_t leaving_bytes_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  std::size_t front_sent_ SYNCOPATE_GUARDED_BY(mutex_) = 0;    ///< bytes of the first of `leaving_` that have left
  std::vector<Payload> written_ SYNCOPATE_GUARDED_BY(mutex_);  ///< written or dropped: to be released without the lock
  Sending sending_ SYNCOPATE_GUARDED_BY(mutex_) = Sending::open;
  std::optional<std::string> close_text_ SYNCOPATE_GUARDED_BY(mutex_);  ///< of this end
  Owner owner_ SYNCOPATE_GUARDED_BY(mutex_) = Owner::holds;
  bool is_blocked_ SYNCOPATE_GUARDED_BY(mutex_) = false;  ///< the kernel takes no more for now
  bool has_written_ SYNCOPATE_GUARDED_BY(mutex_) = true;  ///< since the last tick

  base::Mutex callback_mutex_;  ///< held during a callback
  StreamEvents events_ SYNCOPATE_GUARDED_BY(callback_mutex_);
  /// No callback runs any more: `end` need not wait, so the last owner of a stream may drop it under a lock that
  /// callbacks take.
  std::atomic<bool> is_silent_ = false;

  // The loop's.
  transport::socket::FrameReader<kFrameHeaderBytes> reader_;
  FrameShape frame_;
  std::shared_ptr<std::byte> payload_;
  base::Duration silence_;
  base::Beat beat_;
  Receiving receiving_ = Receiving::settings;
  bool has_read_ = false;    ///< since the last tick
  base::Duration quiet_{};   ///< time without bytes of the other end
  base::Duration ending_{};  ///< time since the stream ended, or was closed and given up
  bool is_muted_ = false;    ///< the program has given up the stream on this thread
};

}  // namespace syncopate::server::streams
