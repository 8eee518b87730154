// An optimizer over a network's parameters, on libtorch's threads.
#include "update/optimizer.hpp"

#include <ATen/Parallel.h>

#include "network/network.hpp"

namespace syncopate::train {

std::unique_ptr<Optimizer> optimizer_for(const Network& network, OptimizerOptions options) {
  options.parallel = [](std::size_t count, const std::function<void(std::size_t)>& body) {
    at::parallel_for(0, static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) body(static_cast<std::size_t>(i));
    });
  };
  const bool spares = is_layer_wise(options.rule);
  std::vector<WeightTensor> tensors;
  for (const auto& [name, value] : network.parameters)
    tensors.push_back({.name = name, .weights = view_of(value), .spared = spares && value.dim() <= 1});
  return std::make_unique<Optimizer>(std::move(tensors), options);
}

}  // namespace syncopate::train
