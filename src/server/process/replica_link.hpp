// ReplicaLink: from a server to the keeper of its replica: claims, takes over, and forwards.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/guarded.hpp"
#include "server/streams/streams.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate::server {

/// A thread dials the keeper again whenever the stream has ended, claims the server, takes over the replica's state if
/// `tables` are empty, and lets the replica follow.
class ReplicaLink final {
 public:
  struct Events {
    /// Called once: the replica's state has been taken over, so workers may be served. On the link's thread.
    std::function<void()> joined;
    /// Called once: this process is no longer the server, or cannot be. On the link's thread, which has ended its work.
    std::function<void(std::exception_ptr)> failed;
  };

  struct Keeper {
    std::string address;
    std::size_t server = 0;  ///< the server that keeps the replica
    std::size_t of = 0;      ///< this server
  };
  /// `streams` and `tables` must outlive this.
  ReplicaLink(streams::Streams& streams, Keeper keeper, syncopate::Log log, ServerTables& tables, Events events);
  ~ReplicaLink() { end(); }
  ReplicaLink(const ReplicaLink&) = delete;
  ReplicaLink& operator=(const ReplicaLink&) = delete;

  /// Starts and stops the thread. Nothing is forwarded before `begin`; no event is called after `end`.
  void begin();
  void end();
  /// Sends on the current stream; dropped if there is none.
  void forward(const Record& record);

 private:
  struct State {
    std::shared_ptr<streams::Stream> stream{};  ///< the current one; null: none, or not dialled yet
    std::optional<std::uint64_t> holds{};       ///< the keeper's answer to the claim
    std::optional<streams::Ending> ending{};
    std::optional<RelayKind> refusal{};  ///< the keeper's answer, if it refuses the claim
    bool is_over = false;                ///< this object
  };

  void run();
  [[nodiscard]] bool serve_once();
  void receive(RecordReader& reader, Payload bytes);
  void consider(const streams::Ending& ending) const;
  [[noreturn]] void report(RelayKind refusal) const;

  streams::Streams& streams_;
  const Keeper keeper_;
  const syncopate::Log log_;
  const std::uint64_t process_;  ///< random; identifies this process
  ServerTables& tables_;
  const Events events_;
  base::Guarded<State> state_;
  bool has_joined_ = false;  ///< of the thread
  std::jthread thread_;
};

}  // namespace syncopate::server
