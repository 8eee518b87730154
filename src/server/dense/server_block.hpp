// ServerBlock: a block on its server: its weights, the updates of each worker, and the waiting workers.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "compress/sparse/packet.hpp"
#include "optim/norms.hpp"
#include "optim/rule.hpp"
#include "server/dense/answer_stream.hpp"
#include "server/message.hpp"

namespace syncopate::server {

/// A state machine without clock, thread or wire. Law: an update is applied once, even if it is sent repeatedly, and an
/// answered update has been applied. A worker has at most one pending message per block, so that held state is bounded.
/// Used by one thread at a time.
class ServerBlock final {
 public:
  /// `terms` must outlive this.
  ServerBlock(const JobRules& rules, const Block& block, bool spared);

  /// Part `part` (kept_part) of the first values, from worker 0: the optimizer's state, unless it is zero, then the
  /// weights. Parts after the weights are ignored. Throws Corrupt for another length or part.
  void initialise(base::ConstBytes values, std::uint64_t part);
  /// An update of steps [push.first, push.last): applied, or held until every worker's has come, or ignored as a
  /// repetition. Its worker waits for weights from now on. Throws Mismatch if earlier updates are missing, and Corrupt.
  /// `now_s`, here and below: for Pace; only models that read paces decide by it.
  void receive(std::size_t worker, const Push& push, double now_s = 0);
  /// The worker waits for weights.
  void ask(std::size_t worker, const AnswerTerms& terms);
  /// Workers that can be answered; they stop waiting. Each server begins with another worker, so that servers do not
  /// all answer the same worker first.
  [[nodiscard]] std::vector<std::size_t> answerable();
  [[nodiscard]] Weights answer(std::size_t worker, double now_s = 0);
  /// Workers that wait for nothing, and that Rule::sends_unasked names; `push_weights` makes their message.
  [[nodiscard]] std::vector<std::size_t> unasked();
  [[nodiscard]] Weights push_weights(std::size_t worker);
  /// The worker has them.
  void see(std::size_t worker) noexcept { workers_[worker].may_be_sent = true; }
  /// The clocks of all workers, for Rule::sees_clocks.
  [[nodiscard]] std::vector<Clock> clocks() const;

  /// The worker's clock no longer counts. Its updates stay.
  void leave(std::size_t worker);
  /// The worker is on another stream, where it repeats its request. If it had left, it takes part again, and its clock
  /// counts from that of the others. Its earlier updates are not applied again.
  void come_back(std::size_t worker);
  /// This process is that worker from now on, and participates from step `from` on.
  void join(std::size_t worker, Clock from, std::uint64_t process);

  /// Block::is_joint: every worker's update of the next step has come; the table's other blocks may still wait.
  [[nodiscard]] bool is_complete() const;
  /// The first complete step that has an update, or the last complete one if none has.
  [[nodiscard]] Clock next_step() const;
  /// Ends the steps before that one, which have no update.
  void skip_to(Clock step);
  /// The squared norms of the next step, of optim::kBlock elements each, after which only `finish_step` may follow.
  [[nodiscard]] std::vector<optim::Squares> prepare_step();
  /// Applies that step by the trust ratio of the whole table. Throws Corrupt if it is not complete, or the block not
  /// joint.
  void finish_step(Clock step, double trust);

  /// The change that `answer` makes to the block itself. `version` counts it.
  void show() { answers_.advance(shown()); }
  [[nodiscard]] std::uint64_t version() const noexcept { return answers_.version(); }
  /// The complete state except the waiting workers, which ask again: a block of the same terms that is restored from it
  /// continues with the same bits. Throws Corrupt for malformed bytes; the block is then unusable.
  [[nodiscard]] Payload image() const;
  void restore(base::ConstBytes image);
  /// After `restore`: every worker takes part as another process, from this step on. Later updates stay in the weights,
  /// as in a checkpoint. Throws Corrupt if an image is not of that step.
  void begin_again(Clock step);

  [[nodiscard]] Clock least() const noexcept;  ///< all updates of this number of steps are applied
  [[nodiscard]] Clock clock_of(std::size_t worker) const noexcept { return workers_[worker].clock; }
  [[nodiscard]] Clock applied_of(std::size_t worker) const noexcept { return workers_[worker].applied; }
  /// The process whose updates are counted; 0: none has joined.
  [[nodiscard]] std::uint64_t process_of(std::size_t worker) const noexcept { return workers_[worker].process; }
  /// The number of every worker's steps that a worker waits for; 0: no worker waits.
  [[nodiscard]] Clock wanted() const noexcept;
  [[nodiscard]] bool takes_part(std::size_t worker) const noexcept { return workers_[worker].takes_part; }
  [[nodiscard]] std::span<const float> values() const noexcept { return weights_; }

 private:
  struct WorkerState {
    bool takes_part = true;
    std::uint64_t process = 0;
    Clock applied = 0;              ///< number of its first updates that have come,
    std::uint32_t piece = 0;        ///< with this push of them
    Clock clock = 0;                ///< others wait for it beyond this step; more than `applied` if it was away
    std::optional<Clock> asks{};    ///< it waits for weights with this number of every worker's steps...
    Clock step = 0;                 ///< ...or until this step is allowed; 0: no step is
    std::uint64_t version = 0;      ///< AnswerTerms::version of its request
    std::optional<Payload> held{};  ///< in lockstep: its update of a step that is not complete; empty: zero
    Clock held_for = 0;
    double rate = 0;
    Pace pace{};
    std::optional<double> answered_s{};  ///< when it was answered last: it does not wait for this server afterwards
    bool may_be_sent = false;            ///< weights without a request: none are on their way
    std::uint64_t changes = 0;           ///< `changes_` when weights were sent to it
  };

  [[nodiscard]] bool may_answer(const WorkerState& worker_state, Clock least) const;
  [[nodiscard]] Clock last_step_for(const WorkerState& worker_state, Clock least) const;
  template <class Decide>
  [[nodiscard]] auto decided(const WorkerState& worker_state, Clock least, const Decide& decide) const;
  [[nodiscard]] Weights message_to(WorkerState& worker_state);
  void apply(WorkerState& worker_state, std::size_t worker, const Push& push, double now_s);
  void require_length(base::ConstBytes values) const;
  void require_part(std::uint64_t part) const;
  [[nodiscard]] bool has_state_in_image() const noexcept;
  [[nodiscard]] const std::vector<float>& part(std::size_t index) const {
    return index == 0 ? weights_ : state_[index - 1];
  }
  void require_sound(base::ConstBytes update, Clock step);
  void require_sound(const Push& push);
  void begin_decoding();
  static void measure(WorkerState& worker_state, const Push& push, double now_s);
  void require_next(std::size_t worker, const Push& push);
  void hold(WorkerState& worker_state, const Push& push);
  void complete_steps();
  void find_senders();
  void apply_step();
  void end_step();
  void average(Range tile, std::span<float> sum);
  [[nodiscard]] optim::Step step_of(double trust) const;
  [[nodiscard]] optim::TensorSlice slice(Range tile, std::span<float> gradient);
  void add_checked(base::ConstBytes update, bool is_decoded);
  void add_by_storage(base::ConstBytes update, bool is_decoded);
  void combine_decoded(std::span<float> combined);
  [[nodiscard]] std::span<const float> shown();
  void changed() noexcept;
  void add(base::ConstBytes update, Range range, float* into);
  void add_selected_alike(std::span<float> sum);

  const JobRules& rules_;
  const bool spared_;
  const std::size_t server_;
  const BlockView view_;
  const std::uint64_t key_;
  const bool selects_alike_, corrects_, is_joint_;
  std::unique_ptr<compress::Coder> coder_;  ///< of updates; null: they are sent uncoded
  bool has_weights_ = false;
  std::vector<float> weights_;
  std::array<std::vector<float>, optim::kMostStates> state_;
  std::vector<WorkerState> workers_;
  bool is_prepared_ = false;  ///< `scratch_` holds the direction of the next step
  /// In lockstep: the sum of a tile, or of the block if it is coded, joint or of a storage. Else, if coded: the weights
  /// with the checked update; of a storage: the checked update.
  std::vector<float> scratch_;
  std::vector<float> kept_;                  ///< Storages::kept
  std::vector<std::vector<float>> decoded_;  ///< for Storages::combine
  std::vector<float> shown_;                 ///< by Storages::answer,
  bool is_shown_ = false;                    ///< of the present weights
  compress::sparse::Arrival part_;           ///< of a push that is packed
  std::uint64_t changes_ = 0;                ///< of the weights
  std::vector<float> packed_;                ///< sum of the payloads of codecs that select alike
  std::vector<WorkerState*> senders_;        ///< of the step that is applied
  Clock complete_ = 0;                       ///< in lockstep: number of applied steps
  AnswerStream answers_;
};

}  // namespace syncopate::server
