// WorkerBlock: a block on a worker: its copy of the weights, what it has added up, and what is under way.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "server/message.hpp"
#include "server/table/setup.hpp"

namespace syncopate::server {

/// A state machine without clock, thread or wire, whose requests (push, fetch) are answered once each; at most one is
/// under way, and until its answer comes updates add up here. A request may be sent again: the server applies it once.
/// Used by one thread at a time.
class WorkerBlock final {
 public:
  /// `weights` are the program's own memory, which is written by `settle`, and in lockstep by `receive`, when nobody
  /// may compute with them anyway. `terms` must outlive this.
  /// `worker`: for codecs that use random numbers.
  WorkerBlock(const Terms& terms, const Block& block, std::span<float> weights, std::size_t worker);

  /// Asks for the weights to begin with, where the worker takes part from step `from` on.
  [[nodiscard]] Message first_request(Clock from);
  /// One more step's update; it travels with those before it, and is free afterwards. In lockstep it is a gradient,
  /// else the change of the weights, divided by the number of workers, which they already hold.
  void add(std::span<const float> update);
  /// A step of the worker has ended, with what was added since the last one; a server updates with this rate.
  void end_step(double rate) noexcept;
  /// The next request, if one is due and none is under way.
  [[nodiscard]] std::optional<Message> request();
  /// The last request, if none is under way: every update that is left. It is answered when everybody's first `own`
  /// steps are applied.
  [[nodiscard]] std::optional<Message> last_request();
  /// From now on `gathering_request` asks for what the server keeps of the block, part after part (kept_part), into
  /// `parts`, each as long as the block, when all of this worker's updates and everybody's of as many steps are in it.
  /// The worker's own weights, and what it knows of the server's, are not touched.
  void gather(std::vector<std::span<float>> parts);
  /// The next request for that, if one is needed and none is under way.
  [[nodiscard]] std::optional<Message> gathering_request();
  [[nodiscard]] bool has_gathered() const noexcept {
    return !request_ && sent_ == own_ && fetched_ >= own_ && gathered_ == parts_.size();
  }
  /// The most steps of everybody that a part held when it was gathered.
  [[nodiscard]] Clock gathered_at() const noexcept { return gathered_at_; }
  /// What the coder of updates has left out of earlier ones, and how many packets it has made. `restore` takes as many
  /// bytes.
  [[nodiscard]] base::ConstBytes left_out() const noexcept { return kept_; }
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
  void restore(base::ConstBytes left_out, std::uint64_t packets);
  /// The worker takes no part in the steps before `own`, beyond those that it has ended.
  void skip_to(Clock own) noexcept { own_ = std::max(own_, own); }
  /// The request under way, to be sent once more on another stream.
  [[nodiscard]] const std::optional<Message>& under_way() const noexcept { return request_; }

  void want(Clock least) noexcept { wanted_ = std::max(wanted_, least); }
  /// An answer to an earlier request, which was sent twice, is not looked at. Throws Corrupt for another length.
  void receive(Message answer);
  /// What came becomes the copy that the worker computes with.
  void settle();

  [[nodiscard]] bool has_weights() const noexcept { return has_weights_; }
  [[nodiscard]] bool may_compute() const noexcept { return has_weights_ && !must_fetch(terms_.consistency, moment()); }
  /// Everybody's updates of this worker's steps are in the weights, or have come.
  [[nodiscard]] bool is_finished() const noexcept {
    return !request_ && sent_ == own_ && fetched_ >= own_ && (!follower_ || version_ == 0);
  }
  [[nodiscard]] Clock staleness() const noexcept { return own_ - fetched_; }
  [[nodiscard]] const Block& block() const noexcept { return block_; }

 private:
  [[nodiscard]] Moment moment() const noexcept;
  [[nodiscard]] double significance() const;
  [[nodiscard]] Message make_request(Clock least, std::uint64_t version);
  [[nodiscard]] Payload take_update();
  void follow(const Message& answer);
  void take_part_of(const Message& answer);

  const Terms& terms_;
  const Block block_;
  const std::span<float> weights_;
  Clock own_ = 0, fetched_ = 0, sent_ = 0, wanted_ = 0;
  Clock ended_ = 0;  ///< the clock after the last step that it made itself
  double rate_ = 0;
  bool has_weights_ = false;
  bool has_update_ = false;                         ///< `update_` holds something
  std::shared_ptr<std::vector<float>> update_;      ///< added up since the last push
  std::shared_ptr<std::vector<float>> travelling_;  ///< of the push under way
  std::unique_ptr<compress::Coder> coder_;          ///< of updates; null: they travel as they are
  std::size_t worker_ = 0;
  std::vector<std::byte> kept_, next_;  ///< the coder's state: what earlier packets left out
  std::uint64_t packets_ = 0;
  std::unique_ptr<compress::Coder> follower_;  ///< of answers; null: they have the weights themselves
  std::vector<float> followed_;     ///< what the server has shown, without this worker's own; not in lockstep
  std::uint64_t version_ = 0;       ///< of the server's that the worker holds; 0: of none, or exactly what it keeps
  std::optional<Message> request_;  ///< under way
  std::vector<std::span<float>> parts_;  ///< to be gathered
  std::size_t gathered_ = 0;             ///< of them
  Clock gathered_at_ = 0;
  std::optional<Message> arrived_;  ///< weights that `settle` has not yet taken
};

}  // namespace syncopate::server
