// ReplicaKeeper: the replica of one server on another: repeats its records, and hands all over to its successor.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "server/rpc/stream.hpp"
#include "server/table/server_tables.hpp"
#include "syncopate/server.hpp"

namespace syncopate::server {

/// Thread-safe. The law: a process that has nothing and claims to be the server is its owner from then on, and is
/// handed what the replica has; one that claims it with tables of its own after that has been replaced, and is told so:
/// so two processes never both acknowledge updates of one server.
class ReplicaKeeper final {
 public:
  /// Of server `server`.
  ReplicaKeeper(std::size_t server, std::size_t memory_bytes, syncopate::Log log);

  /// The server, or who claims to be, on another stream; the one before is cut off.
  [[nodiscard]] rpc::StreamEvents accept(std::unique_ptr<rpc::Stream> stream);
  /// To be called again and again: hands over, and ends streams that are over, which callbacks must not do.
  void turn();
  /// This process ends: the stream too, in order.
  void end();
  void count(ServerStatus& status) const;

 private:
  void receive(std::uint64_t life, Payload bytes);
  void take_claim(std::uint64_t process, bool is_empty);
  void tell(Tells tells, std::uint64_t number) const;
  void hand_over() const;
  void forget();
  void lose(std::uint64_t life, const rpc::Ending& ending);

  const std::size_t server_, memory_bytes_;
  const syncopate::Log log_;
  mutable std::mutex mutex_;
  std::unique_ptr<ServerTables> tables_;
  std::uint64_t has_ = 0;    ///< what `apply` returned last
  std::uint64_t owner_ = 0;  ///< the process that is the server; 0: none has come
  std::shared_ptr<rpc::Stream> stream_;
  std::uint64_t life_ = 0;  ///< counts streams
  bool is_claimed_ = false, is_due_ = false;
  RecordReader reader_;
  std::vector<std::shared_ptr<rpc::Stream>> retired_;
};

}  // namespace syncopate::server
