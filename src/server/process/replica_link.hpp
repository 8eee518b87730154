// ReplicaLink: from a server to the keeper of its replica: claims, takes over, and forwards.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "server/streams/loop.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate::server {

/// Connects to the keeper whenever there is no stream to it, claims the server, takes over the replica's state if
/// `tables` are empty, and lets the replica follow. Thread-safe: a stream calls it on its thread, tables on any, and
/// one other thread calls `turn`.
class ReplicaLink final {
 public:
  /// Begins to connect to the keeper. Called outside callbacks of streams.
  using Dialler = std::function<void(streams::DialEvents)>;
  struct Events {
    /// Called once: the replica's state has been taken over, so workers may be served. In a callback of a stream.
    std::function<void()> joined;
    /// Called once: this process is no longer the server, or cannot be; the link has ended its work. In a callback.
    std::function<void(std::exception_ptr)> failed;
    /// `turn` has something to do. Called on any thread.
    std::function<void()> due;
  };
  struct Ends {
    std::size_t server = 0;     ///< this one
    std::string keeper;         ///< its address
    std::uint64_t process = 0;  ///< identifies this process
  };
  /// `tables` must outlive this.
  ReplicaLink(Dialler dial, Ends ends, syncopate::Log log, std::shared_ptr<const base::Clock> clock,
              ServerTables& tables, Events events);

  /// Outside callbacks of streams: connects when it is time, and ends streams. Returns the time of the next call.
  [[nodiscard]] base::Time turn();
  /// No event is called afterwards, and `turn` is not.
  void end();
  /// Sends to the replica; dropped while it does not follow.
  void forward(const Record& record);

 private:
  enum class Phase : std::uint8_t {
    away,      ///< until `next`, and a turn
    dialling,  ///< one of the dial's events comes
    claiming,  ///< the keeper has not answered the claim
    following,
    over  ///< the last one
  };
  struct State {
    Phase phase = Phase::away;
    base::Time next{};                          ///< the earliest time of a further dial
    std::shared_ptr<streams::Stream> stream{};  ///< while claiming and following
    std::vector<std::shared_ptr<streams::Stream>> retired{};
  };

  [[nodiscard]] streams::StreamEvents reach(std::shared_ptr<streams::Stream> stream);
  void miss(const std::exception_ptr& why);
  void receive(RecordReader& reader, Payload bytes);
  void follow(std::uint64_t kept);
  void lose(const streams::Ending& ending);
  void fail(std::exception_ptr why);
  [[nodiscard]] Mismatch refusal(const Denied& why) const;
  [[nodiscard]] Phase phase() const;

  const Dialler dial_;
  const Ends ends_;
  const syncopate::Log log_;
  const std::shared_ptr<const base::Clock> clock_;
  ServerTables& tables_;
  const Events events_;
  base::Guarded<State> state_;
  bool has_joined_ = false;  ///< of the streams' thread
};

}  // namespace syncopate::server
