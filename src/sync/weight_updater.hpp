// WeightUpdater: the caller's update as the communication thread runs it: on which ranks, and when.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sync/bucket.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync {

/// Scales all gradients so that their global L2 norm is at most `limit`; returns the norm before that. With a group
/// each rank has a part of them, and zero elsewhere: a collective.
double clip(const Arena& arena, double limit, Group* among = nullptr);

[[nodiscard]] std::size_t bytes_of(const std::vector<Buffer>& pieces);

/// Without clipping a bucket is updated as soon as it is combined. Clipping needs the norm of all gradients, so every
/// bucket is updated after the last one has been combined, each just before its weights leave.
/// Used from the communication thread only, except the constructor and `norm`.
class WeightUpdater final {
 public:
  /// Throws Misuse if `options` has no update, or has one although the exchange leaves the update to the caller. Its
  /// weights fit the gradients if the exchange ends in weights. `options`, `arena` and `group` must outlive this.
  WeightUpdater(const Exchange& exchange, Group& group, const SynchronizerOptions& options, const Arena& arena);

  [[nodiscard]] bool ends_in_weights() const noexcept { return exchange_.updater() != Updater::caller; }
  /// Determines, with the other ranks, which weights adjoin in memory on all of them. A collective.
  void agree_on_neighbours();
  [[nodiscard]] Buffer weights_of(std::size_t i) const { return options_.weights[i]; }
  /// The weights of gradients [first, last]; weights that adjoin are one piece.
  [[nodiscard]] std::vector<Buffer> weights_of(std::size_t first, std::size_t last) const;

  void apply(const Bucket& bucket);     ///< call when `bucket` is combined
  void combined();                      ///< call when every bucket is combined, before `complete`
  void complete(const Bucket& bucket);  ///< then the bucket's weights on this rank are final for this step
  [[nodiscard]] bool broadcasts() const noexcept;
  void end_step() noexcept { ++steps_; }

  [[nodiscard]] double norm() const noexcept { return norm_; }  ///< of the last step; call between steps only

 private:
  [[nodiscard]] bool updates_here() const noexcept;
  [[nodiscard]] bool clips() const noexcept { return options_.clip_norm > 0; }
  void update(const Bucket& bucket);

  const Exchange& exchange_;
  Group& group_;
  const SynchronizerOptions& options_;
  const Arena& arena_;
  std::vector<std::int32_t> adjoins_;  ///< whether weights i follow weights i - 1 in memory on every rank
  std::int64_t steps_ = 0;             ///< steps that have ended
  double norm_ = 0;
};

}  // namespace syncopate::sync
