// ServerTables: what one server keeps of a job's tables, and how it answers its workers.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/guarded.hpp"
#include "server/table/server_block.hpp"

namespace syncopate::server {

/// What a server sends to one worker; lower priorities first: the tables of the front layers.
struct Outgoing {
  std::size_t worker = 0;
  std::uint64_t priority = 0;
  Message message{};
};

/// Without wire or clock, so that simulations and tests run what servers run. Safe from any thread; `send` is called
/// on the thread that calls, and must not block.
class ServerTables final {
 public:
  using Send = std::function<void(Outgoing)>;
  /// `memory_bytes`: at most so much is kept, with the optimizer's state and the updates that are held.
  ServerTables(std::size_t server, std::size_t memory_bytes, Send send);
  ~ServerTables();
  ServerTables(const ServerTables&) = delete;
  ServerTables& operator=(const ServerTables&) = delete;

  /// Takes a worker's message, and sends what follows from it. Throws what the worker is to be told: Mismatch for
  /// another setup than the first worker's or updates that are missing, Misuse for a setup that is not allowed or takes
  /// too much memory, Corrupt for anything else that no worker says. Nothing has been changed then.
  void receive(std::size_t worker, const Message& message);
  /// The worker is gone: its clocks count no more, so that nobody waits for it.
  void leave(std::size_t worker);

  [[nodiscard]] std::size_t kept_bytes() const;  ///< of weights
  /// What has been agreed; null before the first worker came.
  [[nodiscard]] std::shared_ptr<const Setup> setup() const;

 private:
  struct Job;
  [[nodiscard]] std::shared_ptr<Job> job() const;
  void set_up(std::size_t worker, const Message& message);
  [[nodiscard]] std::shared_ptr<Job> create(const Setup& setup) const;
  void answer(Job& job, std::size_t index, ServerBlock& block);

  const std::size_t server_, memory_bytes_;
  const Send send_;
  base::Guarded<std::shared_ptr<Job>> job_;
};

}  // namespace syncopate::server
