// WorkerTables: a worker's copies of a job's tables: what it computes with, and what it says to which server.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// A worker told every server that it takes part from step `told` on, and the newest step that they answered is
/// `newest`: whether it may begin there. Else it tells them that step: a server that was behind would wait for steps
/// between, which it never makes.
[[nodiscard]] constexpr bool may_begin(Clock told, Clock newest, Clock first_step) noexcept {
  return newest == told || newest == first_step;
}

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

  /// What the optimizer kept at the setup's first step, of all tables, one after another; none: zero. Every worker
  /// does, before `offer`.
  void begin_with(std::string_view optimizer, std::vector<std::pair<std::string, std::vector<float>>> state);
  /// Offers this worker's weights (and, in lockstep, that state) as the first ones; and asks for those to begin with,
  /// as of step `from`.
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

  /// Between steps: gathers what servers keep of all tables into `parts`, each as long as all tables together: the
  /// weights, then in lockstep the optimizer's states. None: sends every update that is left. `has_gathered` sends
  /// whatever is due, and says whether everybody's updates of `clock()` steps are on the servers, and the parts here.
  void gather(std::span<const std::span<float>> parts);
  [[nodiscard]] bool has_gathered();
  /// The most steps of everybody that what was gathered holds; more than `clock()` where the others did not wait.
  [[nodiscard]] Clock gathered_at();
  /// What the optimizer keeps of all tables, by name: this worker's own, in lockstep zeros to gather into.
  [[nodiscard]] std::vector<std::pair<std::string, std::vector<float>>> optimizer_state();
  /// What the codec of updates has left out of every table's, in the order of elements; and after so many packets.
  [[nodiscard]] std::vector<std::vector<std::byte>> left_out();
  [[nodiscard]] std::uint64_t packets();
  /// Throws Misuse for other lengths.
  void restore(std::span<const std::vector<std::byte>> left_out, std::uint64_t packets);

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
    std::size_t begin = 0;  ///< of its elements among those of all tables
    std::vector<std::unique_ptr<Shared>> blocks;
    std::vector<Block> places;
    bool is_updated = false;  ///< in the present step
  };

  void offer(const Block& place) const;
  void offer(const Block& place, std::span<const float> values, std::uint64_t part) const;
  [[nodiscard]] std::size_t elements() const { return tables_.back().begin + tables_.back().weights.size(); }
  [[nodiscard]] std::vector<std::size_t> in_order(const Table& table) const;
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
  std::vector<std::vector<float>> first_state_;  ///< in lockstep, until the first step has ended
  bool offers_ = false;
  Clock own_ = 0;
  Clock most_stale_ = 0, stale_ = 0, reads_ = 0;
};

}  // namespace syncopate::server
