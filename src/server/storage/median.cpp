// Median: servers apply the median of the workers' updates, element by element.
// A minority of workers with wrong gradients moves no weight beyond what the others want.
// Yin et al., "Byzantine-robust distributed learning: towards optimal statistical rates", ICML 2018, option I.
//
//   updates of one element: 0.2  -0.1  900  0.3  0.1  ->  0.2       (their average is 180.1)
//
// An even number of updates has two in the middle; their mean is taken. Without lockstep an update is applied when it
// comes, alone, as with `plain`.
#include <algorithm>
#include <vector>

#include "server/storage.hpp"

namespace syncopate::server::storage {

namespace {

float median_of(std::span<float> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

void combine(const BlockView& /*block*/, std::span<const std::span<const float>> updates, std::span<float> combined) {
  std::vector<float> values(updates.size());
  for (std::size_t i = 0; i < combined.size(); ++i) {
    for (std::size_t u = 0; u < updates.size(); ++u) values[u] = updates[u][i];
    combined[i] = median_of(values);
  }
}

Storages storages(std::span<const double> /*numbers*/) { return {.combine = combine}; }

}  // namespace

extern constinit const Storage median{
    .name = "median",
    .summary = "In lockstep the servers apply the median of the workers' updates, element by element",
    .source = "Yin et al., ICML 2018",
    .storages = storages,
};

}  // namespace syncopate::server::storage
