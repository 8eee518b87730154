// Your own merge policy: the gradients of one module share a bucket; their names begin alike, up to the last dot.
//
//   first.weight  first.bias  last.weight  last.bias        exchange:   last.*   then first.*
#include "syncopate/policy.hpp"

#include "laws.hpp"
#include "ranks.hpp"

using namespace syncopate;
using namespace syncopate::schedule;

std::string_view module_of(const Layer& layer) { return std::string_view(layer.name).substr(0, layer.name.rfind('.')); }

/// Buckets in the order of exchange: the last layer's gradient is ready first.
Partition partition(const Timeline& timeline, const PolicyOptions& /*options*/) {
  const auto& layers = timeline.layers;
  Partition buckets;
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    if (layer + 1 < layers.size() && module_of(layers[layer]) == module_of(layers[layer + 1]))
      buckets.back().first = layer;
    else
      buckets.push_back({layer, layer});
  }
  return buckets;
}

constexpr Policy kByModule = {.name = "by_module", .partition = partition};

int main() {
  if (!holds(check_policy(kByModule))) return 1;
  return train_on_ranks({.catalogue = Catalogue::standard().with(kByModule), .policy = "by_module"});
}
