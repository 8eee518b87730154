// WeightUpdater: which rank updates and when, and how a failing update reaches the other ranks.
#include "sync/weight_updater.hpp"

#include <cmath>
#include <cstring>

#include "base/require.hpp"
#include "kernel/norm.hpp"
#include "sync/flow.hpp"

namespace syncopate::sync {

double clip(const Arena& arena, double limit, Group* among) {
  double squared = 0;
  for (const Buffer& vector : arena.vectors())
    squared += kernel::squared_norm(vector.dtype, vector.bytes().data(), vector.count);
  if (among != nullptr)
    run(*among, Collective::allreduce, Buffer(&squared, 1, DType::f64), {.name = "the norm of all gradients"});
  const double norm = std::sqrt(squared);
  if (!(norm > limit)) return norm;
  for (const Buffer& vector : arena.vectors())
    kernel::scale(vector.dtype, vector.bytes().data(), vector.count, limit / norm);
  return norm;
}

std::size_t bytes_of(const std::vector<Buffer>& pieces) {
  std::size_t bytes = 0;
  for (const Buffer& piece : pieces) bytes += piece.bytes().size();
  return bytes;
}

WeightUpdater::WeightUpdater(const Exchange& exchange, Group& group, const SynchronizerOptions& options,
                             const Arena& arena)
    : exchange_(exchange), group_(group), options_(options), arena_(arena) {
  if (!ends_in_weights()) {
    base::require(
        !options.update,
        "exchange {} ends in gradients and leaves the update to its caller; `update` is for exchanges that end "
        "in weights, like reduce_broadcast",
        exchange.name);
    return;
  }
  base::require(options.update != nullptr, "exchange {} ends in weights and needs the option update", exchange.name);
  base::require(options.broadcast_every >= 1, "broadcast_every is {}; allowed: 1 and more", options.broadcast_every);
}

void WeightUpdater::agree_on_neighbours() {
  if (!ends_in_weights()) return;
  adjoins_.assign(arena_.count(), 0);
  for (std::size_t i = 1; i < adjoins_.size(); ++i) {
    const Buffer &before = options_.weights[i - 1], &here = options_.weights[i];
    const bool adjoins = before.dtype == here.dtype && before.bytes().data() + before.bytes().size() == here.data;
    adjoins_[i] = adjoins ? 1 : 0;
  }
  allreduce(group_, std::span(adjoins_), {.op = ReduceOp::min, .name = "neighbours among the weights"});
}

std::vector<Buffer> WeightUpdater::weights_of(std::size_t first, std::size_t last) const {
  std::vector<Buffer> pieces;
  if (!ends_in_weights()) return pieces;
  for (std::size_t i = first; i <= last; ++i) {
    if (i > first && adjoins_[i] == 1)
      pieces.back().count += options_.weights[i].count;
    else
      pieces.push_back(options_.weights[i]);
  }
  return pieces;
}

bool WeightUpdater::updates_here() const noexcept {
  return exchange_.updater() != Updater::root || group_.rank() == kRoot;
}

bool WeightUpdater::broadcasts() const noexcept {
  const auto* ending = std::get_if<BroadcastsWeights>(&exchange_.ending);
  return ending == nullptr || ending->always || (steps_ + 1) % options_.broadcast_every == 0;
}

void WeightUpdater::apply(const Bucket& bucket) {
  if (!ends_in_weights()) return;
  if (!updates_here())  // this rank's gradients are unspecified here, and the next step adds to zero
    for (std::size_t i = bucket.first; i <= bucket.last; ++i)
      std::memset(arena_.gradient(i).data, 0, arena_.gradient(i).bytes().size());
  else if (!clips())
    update(bucket);
}

void WeightUpdater::combined() {
  if (!clips() || !updates_here()) return;
  norm_ = clip(arena_, options_.clip_norm, exchange_.updater() == Updater::shards ? &group_ : nullptr);
}

void WeightUpdater::complete(const Bucket& bucket) {
  if (clips() && updates_here()) update(bucket);
}

void WeightUpdater::update(const Bucket& bucket) try {
  const Traced span(options_.trace, "update", bucket.name, 0);
  options_.update(bucket.first, bucket.last);
} catch (const std::exception& error) {
  group_.abort(fmt::format("the update of '{}' failed: {}", bucket.name, error.what()), bucket.name);
  throw;
} catch (...) {  // a callback may throw anything
  group_.abort(fmt::format("the update of '{}' failed", bucket.name), bucket.name);
  throw;
}

}  // namespace syncopate::sync
