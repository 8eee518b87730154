// Observed: many noisy times of few sizes, such as training's own buckets; medians by size that never decrease.
// Isotonic regression by pooling adjacent violators: Ayer, Brunk, Ewing, Reid & Silverman, "An empirical distribution
// function for sampling with incomplete information", Annals of Mathematical Statistics 26 (1955).
//
//   T |     x    .-'       a size that took less than a smaller one is pooled with it: both get their mean,
//     |  .--x---'          weighted by its number of observations; then joined by lines as in `table`
//     | x'
//     '---------------- M
#include <map>

#include "base/require.hpp"
#include "schedule/cost.hpp"
#include "schedule/median.hpp"

namespace syncopate::schedule::cost {

namespace {

struct Pool {
  std::vector<double> sizes;
  double seconds = 0, weight = 0;
};

void add(std::vector<Pool>& pools, Pool pool) {
  while (!pools.empty() && pools.back().seconds > pool.seconds) {
    Pool& before = pools.back();
    const double weight = before.weight + pool.weight;
    before.seconds = (before.weight * before.seconds + pool.weight * pool.seconds) / weight;
    before.weight = weight;
    before.sizes.insert(before.sizes.end(), pool.sizes.begin(), pool.sizes.end());
    pool = std::move(before);
    pools.pop_back();
  }
  pools.push_back(std::move(pool));
}

Cost pool(const CostInputs& inputs) {
  base::require(!inputs.points.empty(), "an observed cost needs at least one observation");
  std::map<double, std::vector<double>> by_size;
  for (const Point& point : inputs.points) by_size[point.bytes].push_back(point.seconds);
  std::vector<Pool> pools;
  for (const auto& [bytes, seconds] : by_size) {
    const auto seen = static_cast<double>(seconds.size());
    add(pools, {{bytes}, schedule::median(seconds), seen});
  }
  CostInputs table;
  for (const Pool& pool : pools)
    for (const double bytes : pool.sizes) table.points.push_back({bytes, pool.seconds});
  return cost_model_named("table").cost(table);
}

}  // namespace

extern constinit const CostModel observed{
    .name = "observed",
    .summary = "Noisy observations: medians by size, pooled where a larger size took less, joined by lines",
    .source = "Ayer et al. 1955 (pooling adjacent violators)",
    .cost = pool,
};

}  // namespace syncopate::schedule::cost
