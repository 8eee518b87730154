// Timeline: a model's layers in forward order, with their sizes and, if measured, their times.
#pragma once

#include <string>
#include <vector>

namespace syncopate::schedule {

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
