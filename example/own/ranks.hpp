// Trains a small model on four ranks, which are threads of this process: the programs of this folder share it.
#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>
#include <thread>
#include <vector>

#include "syncopate/syncopate.hpp"

/// Rank r pulls the weights of two modules towards r, so that training ends at the mean of the ranks: 1.5. Returns
/// an exit status.
inline int train_on_ranks(const syncopate::SynchronizerOptions& options,
                          const syncopate::OptimizerOptions& optimizer = {.rule = "momentum"}) {
  constexpr const char* kNames[] = {"first.weight", "first.bias", "last.weight", "last.bias"};
  constexpr std::size_t kLayers = std::size(kNames), kElements = 4096;
  const auto train = [&](syncopate::Group& group) {
    std::vector<float> weights[kLayers];
    std::vector<syncopate::Gradient> gradients;
    std::vector<syncopate::WeightTensor> tensors;
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      weights[layer].resize(kElements);
      gradients.push_back({.name = kNames[layer], .elements = kElements});
      tensors.push_back({.name = kNames[layer], .weights = std::span(weights[layer])});
    }
    syncopate::Synchronizer synchronizer(group, gradients, options);
    syncopate::Optimizer update(tensors, optimizer);
    const auto gradient_of = [&](std::size_t layer) {
      return std::span(static_cast<float*>(synchronizer.gradient(layer).data), kElements);
    };
    for (std::uint64_t step = 1; step <= 1000; ++step) {
      for (std::size_t layer = kLayers; layer-- > 0;) {
        for (std::size_t i = 0; i < kElements; ++i)
          gradient_of(layer)[i] = weights[layer][i] - static_cast<float>(group.rank());
        synchronizer.ready(layer);
      }
      synchronizer.wait();
      for (std::size_t layer = 0; layer < kLayers; ++layer)
        update.update(layer, gradient_of(layer), {.rate = 0.01, .step = step});
    }
    std::printf("rank %d of %d: %zu buckets, weights %.1f\n", group.rank(), group.size(), synchronizer.buckets().size(),
                weights[0].front());
    for (const auto& layer : weights)
      for (const float weight : layer)
        if (std::abs(weight - 1.5F) > 0.05F) return 1;
    return 0;
  };
  auto groups = syncopate::Group::threads(4);
  std::vector<int> status(groups.size(), 1);
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < groups.size(); ++rank)
    ranks.emplace_back([&, rank] {
      try {
        status[rank] = train(*groups[rank]);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %zu: %s\n", rank, error.what());
      }
    });
  for (std::thread& rank : ranks) rank.join();
  return status[0] + status[1] + status[2] + status[3] > 0 ? 1 : 0;
}
