// Loop: all streams of one end: accepts, dials, and moves their messages, driven by one thread or by virtual time.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "server/streams/connection.hpp"
#include "transport/connect/acceptor.hpp"
#include "transport/socket/poller.hpp"

namespace syncopate::server::streams {

/// Called for each accepted stream; `stream->peer()` is the proven caller. Returns the stream's callbacks. An
/// exception, or dropping the stream, refuses the caller.
using Accepted = std::function<StreamEvents(std::unique_ptr<Stream> stream)>;

/// The end of an attempt to connect: one of the two is called, once, on the loop's thread.
struct DialEvents {
  std::function<StreamEvents(std::unique_ptr<Stream> stream)> reached{};
  /// PeerLost: no server answers. Unauthorized: one of the two ends has not proved the secret. Mismatch: another
  /// version, job or server.
  std::function<void(std::exception_ptr why)> failed{};
};

/// A request to connect to a server.
struct Dial {
  transport::socket::Address to;
  std::string address;                                ///< `to`, as the user wrote it
  std::int32_t server = transport::connect::kAnyone;  ///< the index that the server must have
  base::Duration patience{};                          ///< attempts are repeated for this long
  DialEvents events{};
};

/// The number by which connections name a job, `Hello::group`: a hash of its name.
[[nodiscard]] std::uint64_t number_of_job(const std::string& name) noexcept;

/// "@name", or what `others` makes of the text: `Address::parse` or `Address::resolve`. Throws as `others` does.
[[nodiscard]] inline transport::socket::Address address_in(const std::string& text,
                                                           transport::socket::Address (*others)(std::string_view)) {
  return text.starts_with('@') ? transport::socket::Address::named(text.substr(1)) : others(text);
}

class Loop final {
 public:
  /// `accepted` may be empty if `listen` is not called. `on_work`: called, on any thread, when the loop has something
  /// to do and must be woken; empty: `wake`.
  Loop(EndOptions options, Accepted accepted, transport::socket::System& system = transport::socket::kernel(),
       std::function<void()> on_work = {});
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Before the first `turn`: listens at numeric addresses and @names. Returns them with the ports that the system
  /// chose for port 0. Throws SystemFailure for an address that cannot be bound.
  std::vector<std::string> listen(const std::vector<std::string>& addresses);
  /// Any thread.
  void dial(Dial dial);
  /// Ends the poller's wait.
  void wake() noexcept { poller_.wake(); }
  /// Whether a thread other than the loop's has given it something to do that no turn has done.
  [[nodiscard]] bool has_work() const;

  /// The loop's thread: waits for something to do, at most to `deadline`, and does it. Returns the bytes that it read.
  std::size_t turn(base::Time deadline) { return feed(poller_.wait(std::min(deadline, next_deadline()))); }
  [[nodiscard]] base::Time next_deadline() const;
  /// This thread runs the loop; no thread does.
  void adopt() { work_->adopt(); }
  void disown() { work_->disown(); }
  /// Ends all streams: those that were closed may still send their queues, for the silence.
  void abandon();
  /// No stream is left.
  [[nodiscard]] bool is_empty() const noexcept { return connections_.empty(); }
  [[nodiscard]] transport::socket::Poller& poller() noexcept { return poller_; }

 private:
  struct Dialling {
    Dial dial;
    base::Time deadline, next = base::kNever;  ///< of the next attempt; kNever: one is in progress
    base::Duration pause = std::chrono::milliseconds(5);
    std::string last;  ///< why the last attempt failed
  };

  [[nodiscard]] base::Time now() const { return poller_.system().now(); }
  std::size_t feed(std::span<const transport::socket::Ready> ready);
  void take_dials();
  void attempt(std::uint32_t number, Dialling& dialling);
  void take_results();
  void admit(transport::connect::Connection connection);
  void consider(const transport::connect::Refusal& refusal);
  void expire();
  void open(transport::connect::Connection connection, Identity peer, const std::string& address, bool is_offered,
            const Connection::Taker& taker);
  void reap();

  const EndOptions options_;
  const std::uint64_t job_;
  const Accepted accepted_;
  transport::socket::Poller poller_;
  transport::connect::Acceptor acceptor_;
  const std::function<void()> on_work_;
  const std::shared_ptr<WorkList> work_;
  const Connection::Shared shared_;
  struct Entry {
    std::shared_ptr<Connection> connection;
    std::uint32_t watched = EPOLLIN;
  };
  std::map<std::uint64_t, Entry> connections_;
  std::uint64_t next_key_ = 0;
  base::Guarded<std::vector<Dial>> ordered_;
  std::map<std::uint32_t, Dialling> dials_;
  std::uint32_t next_dial_ = 0;
  bool is_abandoned_ = false;  ///< no further stream begins
};

}  // namespace syncopate::server::streams
