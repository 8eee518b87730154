// A sharded state is gathered rank by rank; a complete one is broadcast by rank 0, and each rank keeps its shards.
#include "update/shards.hpp"

#include <numeric>

#include "require.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::train {
namespace {

std::size_t elements_of(const Shards& shards) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < shards.tensors(); ++i) sum += shards.elements(i);
  return sum;
}

std::span<float> values_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

SharedUpdate shared_update(Group& group, const Network& network, bool own_shards_only) {
  std::vector<std::size_t> elements;
  for (const auto& [name, value] : network.parameters) elements.push_back(static_cast<std::size_t>(value.numel()));
  return {.shards = Shards(elements, group.size()),
          .rank = group.rank(),
          .own_shards_only = own_shards_only,
          .gather = gather_among(group, "squares of norms")};
}

Kept gathered(Group& group, const Shards& shards, Optimizer& optimizer) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < shards.ranks(); ++rank) counts.push_back(shards.elements_of_rank(rank));
  const auto elements = static_cast<std::int64_t>(elements_of(shards));
  const at::Tensor parts = at::empty({elements}, at::kFloat);
  Kept whole{std::string(optimizer.rule()), {}};
  for (const auto& [name, values] : optimizer.state()) {
    const auto begins = counts.begin();
    const auto offset = [&](int rank) { return std::accumulate(begins, begins + rank, std::size_t{0}); };
    std::ranges::copy(values, values_of(parts).subspan(offset(group.rank())).begin());
    allgather_v(group, values_of(parts), counts, {.name = "optimizer state"});
    whole.state.emplace_back(name, at::empty({elements}, at::kFloat));
    for (int rank = 0; rank < shards.ranks(); ++rank)
      shards.join(values_of(parts).subspan(offset(rank), counts[static_cast<std::size_t>(rank)]), rank,
                  values_of(whole.state.back().second));
  }
  return whole;
}

void scatter(Group& group, const Shards& shards, const Kept& whole, Optimizer& optimizer) {
  const std::vector<OptimizerState> own = optimizer.state();
  if (group.rank() == 0) {
    require(whole.optimizer == optimizer.rule(), "the saved state is of optimizer {}, this one is {}", whole.optimizer,
            optimizer.rule());
    require(whole.state.size() == own.size(), "optimizer {} keeps {} vectors, {} were saved", whole.optimizer,
            own.size(), whole.state.size());
  }
  for (std::size_t s = 0; s < own.size(); ++s) {
    const at::Tensor all = group.rank() == 0 ? whole.state[s].second
                                             : at::empty({static_cast<std::int64_t>(elements_of(shards))}, at::kFloat);
    broadcast(group, values_of(all), {.name = "optimizer state"});
    shards.cut(values_of(all), group.rank(), own[s].values);
  }
}

}  // namespace syncopate::train
