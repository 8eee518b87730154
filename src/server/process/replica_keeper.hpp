// ReplicaKeeper: one server's replica on another server: repeats its records, and hands its state to a successor.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "server/rpc/stream.hpp"
#include "server/table/server_tables.hpp"
#include "syncopate/server.hpp"

namespace syncopate::server {

/// Thread-safe. Law: a process without tables that claims to be the server becomes its owner and receives the replica's
/// state; a process with tables that claims the server afterwards has been replaced, and is refused. Two processes
/// therefore never both acknowledge updates of one server.
class ReplicaKeeper final {
 public:
  /// Keeps the replica of server `server`.
  ReplicaKeeper(std::size_t server, std::size_t memory_bytes, syncopate::Log log);

  /// Takes a further stream of the server, or of a process that claims to be it; cuts off the previous one.
  [[nodiscard]] rpc::StreamEvents accept(std::unique_ptr<rpc::Stream> stream);
  /// Call it repeatedly: hands over, and ends streams that are closed, which callbacks must not do.
  void turn();
  /// This process ends: ends the stream in order.
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
  std::uint64_t has_ = 0;    ///< the last return value of `apply`
  std::uint64_t owner_ = 0;  ///< the process that is the server; 0: none yet
  std::shared_ptr<rpc::Stream> stream_;
  std::uint64_t life_ = 0;  ///< counts streams
  bool is_claimed_ = false, is_due_ = false;
  RecordReader reader_;
  std::vector<std::shared_ptr<rpc::Stream>> retired_;
};

}  // namespace syncopate::server
