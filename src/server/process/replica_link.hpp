// ReplicaLink: from a server to the one that keeps its replica: what it claims, takes over, and forwards.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/guarded.hpp"
#include "server/rpc/stream.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate::server {

/// A thread dials the keeper, again whenever the stream has ended, claims the server, takes over what the replica has
/// if `tables` are empty, and lets the replica follow.
class ReplicaLink final {
 public:
  struct Events {
    /// Once: what the replica had has been taken over, so workers may be served. On the link's thread.
    std::function<void()> joined;
    /// Once: this process is not the server any more, or cannot be. On the link's thread, which has ended its work.
    std::function<void(std::exception_ptr)> failed;
  };

  /// `address`: the keeper's. `end.patience`: of one attempt to reach it. `tables` must outlive this.
  ReplicaLink(std::string address, rpc::EndOptions end, ServerTables& tables, Events events);
  ~ReplicaLink() { end(); }
  ReplicaLink(const ReplicaLink&) = delete;
  ReplicaLink& operator=(const ReplicaLink&) = delete;

  /// The thread's. Nothing is forwarded before `begin`; after `end` no event comes any more.
  void begin();
  void end();
  /// On the stream of now; dropped where there is none.
  void forward(const Record& record);

 private:
  struct State {
    std::shared_ptr<rpc::Stream> stream{};  ///< of now; null: none, or it has not been dialled yet
    std::optional<std::uint64_t> holds{};   ///< what the keeper answered to the claim
    std::optional<rpc::Ending> ending{};
    bool is_replaced = false, is_over = false;  ///< is_over: this object
  };

  void run();
  [[nodiscard]] bool serve_once();
  void receive(RecordReader& reader, Payload bytes);
  void consider(const rpc::Ending& ending) const;

  const std::string address_;
  const rpc::EndOptions end_;
  const std::uint64_t process_;  ///< drawn at random: which process this is
  ServerTables& tables_;
  const Events events_;
  base::Guarded<State> state_;
  bool has_joined_ = false;  ///< of the thread
  std::jthread thread_;
};

}  // namespace syncopate::server
