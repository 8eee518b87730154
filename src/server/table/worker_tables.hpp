// WorkerTables: a worker's copies of a job's tables: what it computes with, and what it says to which server.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/guarded.hpp"
#include "server/table/worker_block.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::server {

/// What a worker sends to one server; lower priorities first: the tables of the front layers.
struct Request {
  std::size_t server = 0;
  std::uint64_t priority = 0;
  Message message{};
};

/// How old the weights were that steps computed with, in steps: own clock - steps of everybody.
struct Staleness {
  Clock most = 0;
  double mean = 0;
};

/// Without wire, clock or waiting, so that simulations and tests run what workers run. `receive` and
/// `repeat` may be called from any thread; the others by the program's thread. `send` is called on the thread that
/// calls, and must not block.
class WorkerTables final {
 public:
  using Send = std::function<void(Request)>;
  /// `weights`: of every table, in the program's memory; they must outlive this. Throws Misuse.
  WorkerTables(const Setup& setup, std::size_t worker, std::vector<Buffer> weights, Send send);
  ~WorkerTables();
  WorkerTables(const WorkerTables&) = delete;
  WorkerTables& operator=(const WorkerTables&) = delete;

  /// Offers this worker's weights as the first ones; and asks for those to begin with, as of step `from`.
  void offer();
  void begin(Clock from);
  /// Table `table` has its gradient of the present step: once a step. The gradient is zero afterwards, and what is due
  /// has been sent. In lockstep servers apply it; else this does, to the worker's own weights.
  void update(std::size_t table, std::span<float> gradient, const UpdateStep& at);
  /// The present step has ended. Tables without an update have none in this step.
  void end_step(const UpdateStep& at);

  /// Whether the next step may compute with the table. If not, `demand`, and ask again when something has come.
  [[nodiscard]] bool may_read(std::size_t table);
  /// Sends whatever is due: before waiting, and when something has come while waiting.
  void demand();
  /// Puts what came into the program's memory, and counts how old it is.
  void read(std::size_t table);
  /// Sends every update that is left. Returns whether all tables hold everybody's updates of `clock()` steps.
  [[nodiscard]] bool finish();

  /// A server's message. Throws Corrupt for one that no server says.
  void receive(std::size_t server, Message message);
  /// On another stream to `server`: what is under way is sent once more.
  void repeat(std::size_t server);
  /// Between steps: the others are at this step, and a worker that was away goes on with them.
  void catch_up(Clock least);

  [[nodiscard]] Clock clock() const noexcept { return own_; }
  [[nodiscard]] Staleness staleness() const noexcept;
  [[nodiscard]] bool in_lockstep() const noexcept { return terms_.in_lockstep(); }

 private:
  using Shared = base::Guarded<WorkerBlock>;
  struct Table {
    std::span<float> weights;
    std::vector<std::unique_ptr<Shared>> blocks;
    std::vector<Block> places;
    bool is_updated = false;  ///< in the present step
  };

  void offer(const Block& place) const;
  void end_step(Table& table, double rate);
  void add_change(Table& table, std::size_t index, std::span<float> gradient, const UpdateStep& at);
  void send_due(const Block& place, const std::optional<Message>& message) const;
  template <class F>
  void each_block(F&& f);

  const Setup setup_;
  const Terms terms_;
  const Send send_;
  std::vector<Table> tables_;
  std::vector<std::vector<Shared*>> by_server_;  ///< by the index of a server's block
  std::unique_ptr<Optimizer> optimizer_;         ///< unless in lockstep: the worker's own
  std::vector<float> before_, change_;           ///< of one table
  bool offers_ = false;
  Clock own_ = 0;
  Clock most_stale_ = 0, stale_ = 0, reads_ = 0;
};

}  // namespace syncopate::server
