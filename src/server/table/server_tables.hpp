// ServerTables: what one server keeps of a job's tables, and how it answers its workers.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "server/table/log.hpp"
#include "server/table/server_block.hpp"

namespace syncopate::server {

/// Without wire or clock, so that simulations and tests run what servers run. Safe from any thread; `send` is called
/// on the thread that calls, and must not block.
class ServerTables final {
 public:
  using Send = Log::Send;
  using Forward = Log::Forward;
  /// `memory_bytes`: at most so much is kept, with the optimizer's state and the updates that are held.
  /// `forward`: to the replica; null: there is none.
  ServerTables(std::size_t server, std::size_t memory_bytes, Send send, Forward forward = nullptr);
  ~ServerTables();
  /// What a block is at a step: ServerBlock::image when it has everybody's updates of so many steps.
  struct Image {
    const Setup& setup;
    Clock step = 0;
    std::size_t blocks = 0;
    std::uint32_t block = 0;
    Payload bytes{};
  };
  /// Before anything is received: each block's image is taken when its clock reaches a multiple of `every`: in lockstep
  /// a cut of all servers, for which nobody waits. `take` is called with the block's lock held.
  void take_images(Clock every, std::function<void(Image)> take);
  /// Before anything is received: goes on from a step's images, of all blocks; all workers come anew. `from`: what they
  /// are, for messages. Throws Misuse (too much memory), Corrupt.
  void restore(const Setup& setup, Clock step, std::span<const Payload> images, const std::string& from);
  ServerTables(const ServerTables&) = delete;
  ServerTables& operator=(const ServerTables&) = delete;

  /// Takes a worker's message, and sends what follows from it. Throws what the worker is to be told: Mismatch for
  /// another setup than the first worker's or updates that are missing, PeerLost for a worker that was here before what
  /// this server has, Misuse for a setup that is not allowed or takes
  /// too much memory, Corrupt for anything else that no worker says. Nothing has been changed then.
  void receive(std::size_t worker, const Message& message);
  /// Throws what `receive` would throw because of the job, for a worker's first message. Nothing is changed.
  void require_fitting(std::size_t worker, const Message& first) const;
  /// The worker has come on another stream: what waits for the replica was said on the one before, and is not sent.
  void renew(std::size_t worker) { log_.forget(worker); }
  /// The worker is gone: its clocks count no more, so that nobody waits for it.
  void leave(std::size_t worker);

  /// The replica has all records up to `sequence`: what waited for that is sent.
  void acknowledge(std::uint64_t sequence) { log_.acknowledge(sequence); }
  /// The replica is out of reach: nothing is forwarded, and answers wait.
  void pause() { log_.pause(); }
  /// The replica is there on another stream. `has`: what its `apply` returned last; 0: nothing of use. It is sent what
  /// it lacks, or everything: an image of every block, made and forwarded before this returns.
  void follow(std::uint64_t has);

  /// As a replica: the change that another ServerTables of the same server has made. Returns the sequence to
  /// acknowledge; 0 while blocks are missing. A record that came before is not applied again. Throws Corrupt.
  std::uint64_t apply(const Record& record);
  /// There is nothing to serve: no job, or blocks of one are missing.
  [[nodiscard]] bool is_empty() const;
  /// As a replica: all of it, to a ServerTables that takes the server's place by `apply`. Returns false where
  /// blocks are missing; nothing is handed over then.
  [[nodiscard]] bool hand_over(const Forward& to);

  /// Workers whose clocks count in no block: they have finished, or were given up.
  [[nodiscard]] std::vector<std::size_t> departed() const;
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_bytes_; }
  [[nodiscard]] std::size_t kept_bytes() const;  ///< of weights
  /// What has been agreed; null before the first worker came, also where a job was restored.
  [[nodiscard]] std::shared_ptr<const Setup> setup() const;

 private:
  struct Job;
  [[nodiscard]] std::shared_ptr<Job> job() const;
  void set_up(std::size_t worker, const Message& message);
  static void require_fitting(const Job& job, std::size_t worker, const Setup& setup);
  [[nodiscard]] std::shared_ptr<Job> create(const Setup& setup) const;
  void answer(Job& job, std::size_t index, ServerBlock& block);
  void change(std::size_t index, ServerBlock& block, Record record);
  void transfer(const Job& job, const Forward& to);
  void begin_transfer(const Job& job);
  void apply_to(Job& job, const Record& record);
  void take_image(std::size_t index, const ServerBlock& block);
  void meet(Job& job, std::size_t worker, const Message& message) const;

  const std::size_t server_, memory_bytes_;
  Log log_;
  base::Guarded<std::shared_ptr<Job>> job_;
  std::mutex transferring_;
  Clock image_every_ = 0;  ///< 0: never
  std::function<void(Image)> image_taken_;
};

}  // namespace syncopate::server
