// Trains a small model on four ranks, which are threads of this process: the programs of this folder share it.
#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

#include "syncopate/syncopate.hpp"

/// Rank r pulls 64 weights towards r, so that training ends at the mean of the ranks: 1.5. Returns an exit status.
inline int train_on_ranks(const syncopate::SynchronizerOptions& options,
                          const syncopate::OptimizerOptions& optimizer = {.rule = "momentum"}) {
  constexpr std::size_t kWeights = 64;
  const auto train = [&](syncopate::Group& group) {
    std::vector<float> weights(kWeights);
    syncopate::Synchronizer synchronizer(group, {{.name = "weights", .elements = kWeights}}, options);
    syncopate::Optimizer update({{.name = "weights", .weights = std::span(weights)}}, optimizer);
    const std::span gradient(static_cast<float*>(synchronizer.gradient(0).data), kWeights);
    for (std::uint64_t step = 1; step <= 1000; ++step) {
      for (std::size_t i = 0; i < kWeights; ++i) gradient[i] = weights[i] - static_cast<float>(group.rank());
      synchronizer.ready(0);
      synchronizer.wait();
      update.update(0, gradient, {.rate = 0.01, .step = step});
    }
    std::printf("rank %d of %d: weights %.1f\n", group.rank(), group.size(), weights.front());
    for (const float weight : weights)
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
