// WeightUpdater: the caller's update as the communication thread sees it: on which rank it runs, when, and what is
// left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sync/arena.hpp"
#include "sync/bucket.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync {

/// The L2 norm of all gradients, which are scaled down to `limit` if it is larger.
double clip(const Arena& arena, double limit);

[[nodiscard]] std::size_t bytes_of(const std::vector<Buffer>& pieces);

/// Without clipping a bucket is updated as soon as it is combined. Clipping needs the norm of all gradients: then every
/// bucket is updated when the last one has been combined, each just before its weights leave.
/// Used from one thread, the communication thread, but for the constructor and `norm`.
class WeightUpdater final {
 public:
  /// Throws Misuse where `options` name no update, or weights that do not fit the gradients; or any, where the
  /// exchange leaves the update to the caller. `options`, `arena` and `group` must outlive this.
  WeightUpdater(const Exchange& exchange, Group& group, const SynchronizerOptions& options, const Arena& arena);

  [[nodiscard]] bool ends_in_weights() const noexcept { return exchange_.updater != Updater::caller; }
  /// Finds, together with the other ranks, which weights are neighbours in memory on all of them. A collective.
  void agree_on_neighbours();
  /// The weights of gradients [first, last], such neighbours as one piece.
  [[nodiscard]] std::vector<Buffer> weights_of(std::size_t first, std::size_t last) const;

  void apply(const Bucket& bucket);     ///< `bucket` is combined
  void combined();                      ///< every bucket is: what `complete` needs
  void complete(const Bucket& bucket);  ///< after it, the bucket's weights on this rank are this step's
  [[nodiscard]] bool spreads() const noexcept;
  void end_step() noexcept { ++steps_; }

  [[nodiscard]] double norm() const noexcept { return norm_; }  ///< of the last step; between steps only

 private:
  [[nodiscard]] bool updates_here() const noexcept;
  [[nodiscard]] bool clips() const noexcept { return options_.clip_norm > 0; }
  void update(const Bucket& bucket);

  const Exchange& exchange_;
  Group& group_;
  const SynchronizerOptions& options_;
  const Arena& arena_;
  std::vector<std::int32_t> adjoins_;  ///< weights i follow weights i - 1 in memory, on every rank
  std::int64_t steps_ = 0;             ///< that have ended
  double norm_ = 0;
};

}  // namespace syncopate::sync
