// Timeline: a model's layers in forward order, with their sizes and, if measured, their times.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace syncopate::schedule {

/// Needs at least one value; for an even number of values, the mean of the two in the middle.
[[nodiscard]] inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct Layer {
  std::string name;
  std::size_t bytes = 0;
  double backward_s = 0;  ///< 0: not measured
};

struct Timeline {
  double forward_s = 0;
  std::vector<Layer> layers;
};

/// Layers [first, last] travel together.
struct Bucket {
  std::size_t first = 0, last = 0;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// Every layer in exactly one bucket. Buckets are in the order of exchange: the last layer's bucket comes first,
/// because its gradients are ready first.
using Partition = std::vector<Bucket>;

}  // namespace syncopate::schedule
