// WorkerBlock: a block on a worker: its copy of the weights, accumulated updates, and the pending request.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "server/job/setup.hpp"
#include "server/message.hpp"

namespace syncopate::server {

/// A state machine without clock, thread or wire, whose requests (push, fetch) are answered once each. At most one is
/// pending, and until its answer comes updates accumulate here. A request may be sent again: the server applies it
/// once. Used by one thread at a time.
class WorkerBlock final {
 public:
  /// `weights` is the program's own memory. `settle` writes it, and in lockstep `receive` too, when no computation may
  /// use it. `rules` must outlive this. `worker`: for codecs that use random numbers.
  WorkerBlock(const JobRules& rules, const Block& block, std::span<float> weights, std::size_t worker);

  /// Requests the first weights of a worker that participates from step `from` on.
  [[nodiscard]] BlockRequest first_request(Clock from);
  /// One more step's update; it is sent with the earlier ones, and its memory is free afterwards. In lockstep it is a
  /// gradient, else the change of the weights, divided by the number of workers, which they already hold.
  void add(std::span<const float> update);
  /// A step of the worker has ended, with the updates added since the last one; a server updates with this rate.
  void end_step(double rate) noexcept;
  /// The next request, if one is due and none is pending.
  [[nodiscard]] std::optional<BlockRequest> request();
  /// The last request, if none is pending: all remaining updates. It is answered when every worker's first `own` steps
  /// are applied.
  [[nodiscard]] std::optional<BlockRequest> last_request();
  /// From now on `gathering_request` requests the server's state of the block, part after part (kept_part), into
  /// `parts`, each as long as the block, when it holds all of this worker's updates and the same number of every
  /// worker's steps. The worker's own weights, and its copy of the server's, do not change.
  void gather(std::vector<std::span<float>> parts);
  /// The next request of `gather`, if one is needed and none is pending.
  [[nodiscard]] std::optional<BlockRequest> gathering_request();
  [[nodiscard]] bool has_gathered() const noexcept {
    return !request_ && is_all_sent() && fetched_ >= own_ && gathered_ == parts_.size();
  }
  /// The most steps of every worker that a part held when it was gathered.
  [[nodiscard]] Clock gathered_at() const noexcept { return gathered_at_; }
  /// The state of the coder of updates: the codec's own, then one or two vectors of feedback, each as long as the
  /// block; and the number of its packets. `restore` takes a state of the same length.
  [[nodiscard]] base::ConstBytes left_out() const noexcept { return kept_; }
  [[nodiscard]] std::size_t own_state_bytes() const noexcept;
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
  void restore(base::ConstBytes left_out, std::uint64_t packets);
  /// JobRules::masks_velocity: the velocity of the worker's optimizer for this block, valid as long as this.
  void mask(std::span<float> velocity) noexcept { velocity_ = velocity; }
  /// The worker takes no part in the steps before `own`, beyond those that it has ended.
  void skip_to(Clock own) noexcept { own_ = std::max(own_, own); }
  /// The pending request, to be sent once more on another stream.
  [[nodiscard]] const std::optional<BlockRequest>& under_way() const noexcept { return request_; }

  void want(Clock least) noexcept { wanted_ = std::max(wanted_, least); }
  /// The clocks of all workers, in their order.
  void note(std::vector<Clock> clocks) noexcept { clocks_ = std::move(clocks); }
  /// Ignores a second answer to a request that was sent twice. Throws Corrupt for another length.
  void receive(Weights answer);
  /// The arrived weights become the copy that the worker computes with. Returns whether any have since the last call.
  bool settle();

  [[nodiscard]] bool has_weights() const noexcept { return has_weights_; }
  [[nodiscard]] bool may_compute() const noexcept {
    return has_weights_ && !must_fetch(rules_.consistency, clock_view());
  }
  /// Whether every worker's updates of this worker's steps are in the weights, or have come.
  [[nodiscard]] bool is_finished() const noexcept {
    return !request_ && is_all_sent() && fetched_ >= own_ && is_exact_;
  }
  [[nodiscard]] Clock staleness() const noexcept { return own_ - fetched_; }
  [[nodiscard]] const Block& block() const noexcept { return block_; }

 private:
  [[nodiscard]] ClockView clock_view() const noexcept;
  [[nodiscard]] bool is_all_sent() const noexcept { return sent_ == own_ && whole_ == own_; }
  [[nodiscard]] Clock step_to_ask() const noexcept;  ///< AnswerTerms::step of a request
  [[nodiscard]] double significance() const;
  [[nodiscard]] BlockRequest make_request(const AnswerTerms& terms, bool in_part = false);
  [[nodiscard]] bool divide_update();
  [[nodiscard]] Payload packed_update() const;
  [[nodiscard]] Payload take_update();
  [[nodiscard]] bool answers_request(const Weights& answer) const;
  void mask_sent() const;
  void follow(const Weights& answer);
  void follow_packets(const Weights& answer, std::span<float> known) const;
  void take_part_of(const Weights& answer);
  void adopt_arrived();
  void adopt_by_storage();
  void add_own_to(std::span<float> weights) const;

  const JobRules& rules_;
  const Block block_;
  const std::span<float> weights_;
  Clock own_ = 0, fetched_ = 0, allowed_ = 0, sent_ = 0, wanted_ = 0;
  Clock whole_ = 0;            ///< of `sent_` steps, the first ones whose updates were sent whole
  std::uint32_t piece_ = 0;    ///< of the last push
  std::vector<Clock> clocks_;  ///< Rule::sees_clocks
  bool is_ending_ = false;     ///< `last_request` was called: only requested weights count
  Clock ended_ = 0;            ///< the clock after the last step that it made itself
  double rate_ = 0;
  bool has_weights_ = false;
  bool has_adopted_ = false;                        ///< Storages::adopt has weights to change
  bool is_exact_ = false;                           ///< the last answer held the server's own weights
  bool has_update_ = false;                         ///< `update_` holds an update
  std::shared_ptr<std::vector<float>> update_;      ///< accumulated since the last push
  std::shared_ptr<std::vector<float>> travelling_;  ///< of the pending push
  std::unique_ptr<compress::Coder> coder_;          ///< of updates; null: they are sent uncoded
  std::size_t worker_ = 0;
  std::vector<std::byte> kept_, next_;  ///< the coder's state: its residual, and with momentum its velocity
  std::span<float> velocity_;           ///< to be masked; empty: none is
  std::uint64_t packets_ = 0;
  std::unique_ptr<compress::Coder> follower_;  ///< of answers; null: they hold the weights themselves
  std::vector<float>
      followed_;  ///< the server's shown state, without this worker's own updates; empty: `weights_` follows it
  std::uint64_t version_ = 0;  ///< of the server's state that the worker holds; 0: none, or exactly what it keeps
  std::optional<BlockRequest> request_;  ///< pending
  std::vector<std::span<float>> parts_;  ///< to be gathered
  std::size_t gathered_ = 0;             ///< number of gathered parts
  Clock gathered_at_ = 0;
  bool ignores_part_ = false;       ///< the pending request is for a part of an earlier `gather`
  std::optional<Weights> arrived_;  ///< weights that are not adopted yet
  bool has_changed_ = false;        ///< `weights_`, by an arrival since the last `settle`
};

}  // namespace syncopate::server
