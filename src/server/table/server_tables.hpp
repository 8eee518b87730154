// ServerTables: one server's state of a job's tables, and its answers to workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "server/dense/server_block.hpp"
#include "server/replication/log.hpp"

namespace syncopate::server {

class RowTable;

/// Without wire, and with the clock that it is given, so that simulations and tests run the servers' own code.
/// Thread-safe; `send` is called on the calling thread, and must not block.
class ServerTables final {
 public:
  using Send = Log::Send;
  using Forward = Log::Forward;
  /// `memory_bytes`: limit of the kept state, including the optimizer's state and held updates. `forward`: to the
  /// replica; null: there is none.
  /// `catalogue`: where the names in setups are looked up. `clock`: for Pace.
  ServerTables(std::size_t server, std::size_t memory_bytes, Send send, Forward forward = nullptr,
               const Catalogue& catalogue = {},
               std::shared_ptr<const base::Clock> clock = std::make_shared<base::SteadyClock>());
  /// For simulations: keeps no values.
  ServerTables(std::size_t server, NoValues no_values, Send send, const Catalogue& catalogue,
               std::shared_ptr<const base::Clock> clock);
  ~ServerTables();
  /// The state of a block or table of rows at a step: ServerBlock::image when it has the updates of that number of
  /// steps of every worker, or the parts of RowTable::image when all pushes of these steps are applied.
  struct Image {
    const Setup& setup;
    Clock step = 0;
    std::size_t pieces = 0;  ///< blocks, and tables of rows after them
    std::size_t piece = 0;
    std::vector<Payload> parts{};
  };
  /// Call it before anything is received: takes each image when its clock reaches a multiple of `every`; in lockstep
  /// this is a cut of all servers. No worker waits for the cut of blocks; for that of rows, in lockstep, a worker waits
  /// before its next push. `take` is called with the lock of the block or table held. `begun` is called once, when all
  /// servers have accepted a worker, before any image is taken: with the step at which the tables were created or
  /// restored.
  void take_images(Clock every, std::function<void(Image)> take, std::function<void(Clock)> begun = nullptr);
  /// Call it before anything is received: continues from a step's images, the parts of all pieces in their order; all
  /// workers join again.
  /// `from`: their source, for messages. Throws Misuse (too much memory), Corrupt.
  void restore(const Setup& setup, Clock step, std::span<const Payload> images, const std::string& from);
  ServerTables(const ServerTables&) = delete;
  ServerTables& operator=(const ServerTables&) = delete;

  /// Takes a worker's message, and sends the resulting messages. Throws the error that the worker must receive:
  /// Mismatch for another setup than the first worker's, a name that this server's catalogue lacks, or missing updates,
  /// PeerLost for a worker that was here before this server's state, Refusal for a setup that is not allowed or takes
  /// too much memory, Corrupt for any other invalid message. Nothing has changed then. A Mismatch is also what a
  /// process receives that returns after another one has taken its place: the server counts the other one's pushes.
  void receive(std::size_t worker, const WorkerMessage& message);
  /// Throws the errors that the job makes `receive` throw for a worker's first message. Changes nothing.
  void require_fitting(std::size_t worker, const WorkerMessage& first) const;
  /// The worker has come on another stream: answers that wait for the replica belong to the previous one, and are not
  /// sent.
  void renew(std::size_t worker) { log_.forget(worker); }
  /// The worker is gone: its clocks no longer count, so that no other worker waits for it.
  void leave(std::size_t worker);

  /// The replica has all records up to `sequence`: sends the messages that waited for them.
  void acknowledge(std::uint64_t sequence) { log_.acknowledge(sequence); }
  /// The replica is out of reach: nothing is forwarded, and answers wait.
  void pause() { log_.pause(); }
  /// The replica is reachable on another stream. `has`: the last return value of its `apply`; 0 if it must be rebuilt.
  /// Sends it the records that it lacks, or everything: an image of every block, made and forwarded before this
  /// returns.
  void follow(std::uint64_t has);

  /// On a replica: repeats a change of another ServerTables of the same server. Returns the sequence to acknowledge; 0
  /// while blocks are missing. A repeated record is not applied again. Throws Corrupt.
  std::uint64_t apply(const Record& record);
  /// Whether there is nothing to serve: no job, or missing blocks.
  [[nodiscard]] bool is_empty() const;
  /// On a replica: sends its whole state to a ServerTables that replaces the server, which calls `apply`. Returns false
  /// if blocks are missing; nothing is sent then.
  [[nodiscard]] bool hand_over(const Forward& to);

  /// Workers whose clocks count in no block: they have finished, or were given up.
  [[nodiscard]] std::vector<std::size_t> departed() const;
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_bytes_; }
  [[nodiscard]] std::size_t kept_bytes() const;  ///< of weights, and of rows with their state
  /// The agreed setup; null before the first worker came, also if a job was restored.
  [[nodiscard]] std::shared_ptr<const Setup> setup() const;

 private:
  struct Job;
  [[nodiscard]] std::shared_ptr<Job> job() const;
  [[nodiscard]] double now_s() const { return base::seconds(clock_->now().time_since_epoch()); }
  void set_up(std::size_t worker, const Hello& hello);
  [[nodiscard]] std::pair<std::shared_ptr<Job>, bool> agree(std::size_t worker, const Hello& hello);
  void identify(Job& job, const Hello& hello) const;
  static void require_fitting(const Job& job, std::size_t worker, const Setup& setup);
  void require_known(const Job& job, std::size_t worker, const Hello& hello) const;
  [[nodiscard]] std::shared_ptr<Job> create(const Setup& setup) const;
  void create_rows(Job& job, std::size_t most_bytes) const;
  void answer(Job& job, std::size_t index, ServerBlock& block);
  void change(std::size_t index, ServerBlock& block, std::size_t worker, Change change);
  void step_jointly(Job& job, std::size_t table);
  void step_jointly(Job& job);
  void with_block(Job& job, std::uint32_t index, const std::function<void(ServerBlock&)>& use);
  void receive_rows(Job& job, std::size_t worker, const PullRows& pull);
  void receive_rows(Job& job, std::size_t worker, const VisitRows& visit);
  void receive_rows(Job& job, std::size_t worker, const RowPush& push);
  void apply_push(Job& job, std::uint32_t index, RowTable& table, std::size_t worker, const RowPush& push);
  void send_pushed(std::uint32_t index, RowTable& table, std::size_t worker);
  void end_wait(Job& job, std::uint32_t index, RowTable& table);
  void meet_rows(Job& job, std::size_t worker, const Hello& hello);
  void leave_rows(Job& job, std::size_t worker);
  void transfer(const Job& job, const Forward& to);
  void transfer_rows(const Job& job, const Forward& to);
  void begin_transfer(const Job& job);
  void begin_replica(const change::SetUp& from);
  void apply_to(Job& job, const Record& record);
  void apply_to_block(Job& job, std::uint32_t index, const Record& record);
  static void apply_to_rows(Job& job, std::uint32_t index, const Record& record);
  [[nodiscard]] Clock step_of_image(const Job& job, Clock imaged, Clock now) const;
  void take_image(std::size_t index, const ServerBlock& block);
  void take_image(Job& job, std::uint32_t index, RowTable& table);

  const std::size_t server_, memory_bytes_;
  const Catalogue catalogue_;
  const std::optional<NoValues> no_values_{};
  const std::shared_ptr<const base::Clock> clock_;
  Log log_;
  base::Guarded<std::shared_ptr<Job>> job_;
  base::Mutex transferring_;  ///< held while everything is transferred: one transfer at a time
  Clock image_every_ = 0;     ///< 0: never
  std::function<void(Image)> image_taken_;
  std::function<void(Clock)> begun_;
};

}  // namespace syncopate::server
