// WorkerTables: a worker's copies of a job's tables: the weights it computes with, and its requests to each server.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "server/dense/worker_block.hpp"
#include "server/request.hpp"
#include "server/rows/worker_rows.hpp"
#include "syncopate/optimizer.hpp"
#include "syncopate/server_checkpoint.hpp"

namespace syncopate::server {

/// Age of the weights that steps computed with, in steps: own clock - steps of every worker.
struct Staleness {
  Clock most = 0;
  double mean = 0;
};

/// Where a worker begins that has sent nothing before. Its setups have it, and the servers' welcomes correct it.
struct Entry {
  Clock step = 0;     ///< the first one that it takes part in
  Clock meeting = 0;  ///< it takes part in the visits of rows that begin after this meeting (RowMarks)

  void correct_by(const Welcome& welcome);
};

/// Whether a worker may begin, when it has sent every server an entry and their welcomes have corrected it. If not, it
/// sends them the corrected one: otherwise a server that was behind would wait for steps and meetings between, which
/// the worker never makes.
[[nodiscard]] constexpr bool may_begin(const Entry& sent, const Entry& corrected, Clock first_step) noexcept {
  return corrected.meeting == sent.meeting && (corrected.step == sent.step || corrected.step == first_step);
}

/// Without wire, clock or waiting, so that simulations and tests run the workers' own code. `receive` and `repeat` may
/// be called from any thread; the others by the program's thread. `send` is called on the calling thread, and must not
/// block.
class WorkerTables final {
 public:
  using Send = std::function<void(Request)>;
  /// `weights`: of every table, in the program's memory; they must outlive this. They are read here, and written by
  /// `update` and `read`; in lockstep those of f32 that no storage loads also by `receive`. Throws Misuse.
  WorkerTables(const Setup& setup, std::size_t worker, std::vector<Buffer> weights, Send send);
  /// For simulations: the tables have no values, and every gradient is empty.
  WorkerTables(const Setup& setup, std::size_t worker, NoValues no_values, Send send);
  ~WorkerTables();
  WorkerTables(const WorkerTables&) = delete;
  WorkerTables& operator=(const WorkerTables&) = delete;

  /// The optimizer's state at the setup's first step, of all tables, one after another; none: zero. Every worker calls
  /// it, before `offer`. Its weights are those of tables that have a copy of the program's memory, which may have
  /// rounded them; none: those that were loaded.
  void begin_with(KeptTables earlier);
  /// Offers this worker's weights (and, in lockstep, that state) as the first ones, and requests the first weights, as
  /// of the entry's step.
  void offer();
  void begin(const Entry& entry);
  /// Table `table` has its gradient of the current step: once a step. Afterwards the gradient is zero, and due requests
  /// were sent (in flow traditional `end_step` sends them). In lockstep servers apply it; else this applies it to the
  /// worker's own weights.
  void update(std::size_t table, std::span<float> gradient, const UpdateStep& at);
  /// Takes a gradient of any type that weights may have.
  void update(std::size_t table, const Buffer& gradient, const UpdateStep& at);
  /// The current step has ended. A table without a call of `update` has no update in this step.
  void end_step(const UpdateStep& at);

  /// Whether the next step may compute with the table; in flow traditional, with all tables. If not, call `demand`, and
  /// ask again after an arrival.
  [[nodiscard]] bool may_read(std::size_t table);
  /// Sends all due requests. Call it before waiting, and after an arrival while waiting.
  void demand();
  /// Copies arrived weights to the program's memory, and records their age.
  void read(std::size_t table);
  /// Sends all remaining updates. Returns whether all tables hold every worker's updates of `clock()` steps, and this
  /// worker's pushes of rows are acknowledged.
  [[nodiscard]] bool finish();

  /// Between steps: gathers the servers' state of all tables into `parts`, each as long as all tables together: the
  /// weights, then in lockstep the optimizer's states. No parts: sends all remaining updates. `has_gathered` sends all
  /// due requests, and returns whether every worker's updates of `clock()` steps are on the servers, and the parts
  /// here.
  void gather(std::span<const std::span<float>> parts);
  [[nodiscard]] bool has_gathered();
  /// The most steps of every worker in the gathered state; more than `clock()` if the others did not wait.
  [[nodiscard]] Clock gathered_at();
  /// The optimizer's state of all tables, by name: this worker's own; in lockstep zeros to gather into.
  [[nodiscard]] std::vector<std::pair<std::string, std::vector<float>>> optimizer_state();
  /// The state of the codec of updates for every table (StateLayout), and the number of its packets.
  [[nodiscard]] std::vector<std::vector<std::byte>> left_out();
  [[nodiscard]] std::uint64_t packets();
  /// With other blocks, the codec's own state is empty at first. Throws Misuse for other lengths.
  void restore(std::span<const std::vector<std::byte>> left_out, std::uint64_t packets);

  /// Takes a server's message. Throws Corrupt for an invalid one.
  void receive(std::size_t server, ServerMessage message);
  /// On another stream to `server`: sends the pending requests once more.
  void repeat(std::size_t server);
  /// Between steps: the others are at this step, and a worker that was away continues with them.
  void catch_up(Clock least);

  [[nodiscard]] WorkerRows& rows() noexcept { return rows_; }
  [[nodiscard]] Clock clock() const noexcept { return own_; }
  [[nodiscard]] Staleness staleness() const noexcept;
  [[nodiscard]] bool in_lockstep() const noexcept { return rules_.in_lockstep(); }

 private:
  using Shared = base::Guarded<WorkerBlock>;
  /// Numbers of the blocks, in the order in which they are sent.
  using Changed = std::set<std::size_t>;
  struct Place {
    Shared* block = nullptr;
    std::size_t turn = 0;
  };
  struct Table {
    Buffer memory;            ///< the program's
    std::vector<float> copy;  ///< of it; empty: blocks use it itself
    std::span<float> weights;
    std::size_t begin = 0;  ///< of its elements among those of all tables
    std::vector<std::unique_ptr<Shared>> blocks;
    std::vector<Block> places;
    std::size_t first_turn = 0;  ///< of its first block; the others follow
    bool is_updated = false;     ///< in the current step
  };

  WorkerTables(const Setup& setup, std::size_t worker, std::vector<Buffer> weights, std::optional<NoValues> no_values,
               Send send);
  void offer(const Block& place) const;
  void offer(const Block& place, std::span<const float> values, std::uint64_t part) const;
  [[nodiscard]] std::size_t elements() const {
    return tables_.empty() ? 0 : tables_.back().begin + tables_.back().weights.size();
  }
  [[nodiscard]] std::vector<std::size_t> in_order(const Table& table) const;
  /// A piece of a block's coder state, and where it is among the bytes of its table's.
  struct StatePart {
    std::size_t block = 0;
    Range in_block{};
    std::size_t at = 0;
    bool is_own = false;  ///< the codec's, not feedback's
  };
  /// Where a table's coder states are: feedback's vectors as if the table were one block, so that they fit other blocks
  /// too; then, if the codec keeps a state, 8 bytes that identify the blocks, and the codec's state of each.
  struct StateLayout {
    std::vector<StatePart> parts{};
    std::size_t vector_bytes = 0, bytes = 0;
    std::uint64_t cut = 0;
  };
  [[nodiscard]] StateLayout layout_of(const Table& table) const;
  void restore(const Table& table, base::ConstBytes saved, std::uint64_t packets) const;
  void clip(std::span<float> gradient) const;
  [[nodiscard]] bool is_f32_here(const Buffer& memory) const noexcept;
  void load(const Buffer& memory, std::span<float> values) const;
  void store(std::span<const float> values, const Buffer& memory) const;
  void mask_velocities();
  void add_change(Table& table, std::size_t index, std::span<float> gradient, const UpdateStep& at);
  void send_due(const Block& place, const std::optional<BlockRequest>& request) const;
  void apply(std::size_t server, Weights answer);
  void apply(std::size_t server, const Want& want);
  void apply(std::size_t server, const Clocks& clocks);
  [[nodiscard]] const Place& place_of(std::size_t server, std::uint32_t block) const;
  void note_change(std::size_t turn);
  template <class F>
  void each_block(F&& f);
  [[nodiscard]] static bool is_fresh(const Table& table);
  template <class F>
  void end_step(const Table& table, double rate, F&& add);

  const Setup setup_;
  const JobRules rules_;
  const Send send_;
  WorkerRows rows_;
  std::vector<Table> tables_;
  std::vector<Shared*> by_turn_;
  std::vector<std::vector<Place>> by_server_;    ///< by the index of a server's block
  base::Guarded<Changed> changed_;               ///< blocks whose next request may be due since the last `demand`
  std::unique_ptr<Optimizer> optimizer_;         ///< unless in lockstep: the worker's own
  std::vector<float> before_, change_;           ///< of one table
  std::vector<float> gradient_;                  ///< of one table, as f32
  std::vector<std::vector<float>> first_state_;  ///< in lockstep, until the first step has ended
  bool offers_ = false;
  Clock own_ = 0;
  Clock all_fresh_at_ = -1;  ///< flow traditional: the last step that found all tables fresh
  Clock most_stale_ = 0, stale_ = 0, reads_ = 0;
};

}  // namespace syncopate::server
