// Every optimizer's update of one tensor on one thread, by the bytes that its rule moves; compare kernel.cpp's memcpy.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "optim/rule.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate {
namespace {

void update(benchmark::State& state, const optim::Rule* rule) {
  std::vector<float> weights(static_cast<std::size_t>(state.range(0)), 1.0F), gradient(weights.size());
  Optimizer optimizer({{"w", std::span(weights)}}, {.rule = std::string(rule->name)});
  static_cast<void>(optimizer.state());  // its memory is touched for the first time here, not in the first iteration
  for (std::uint64_t step = 1; auto _ : state) {
    optimizer.update(0, gradient, {.rate = 1e-9, .step = step});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * weights.size() * rule->moved_bytes));
}

/// Filled before main by Google Benchmark's own convention. Weights: 4 KiB, 256 KiB, 64 MiB.
const bool registered = [] {
  for (const optim::Rule* rule : optim::rules()) {
    auto* const benchmark = benchmark::RegisterBenchmark(("update/" + std::string(rule->name)).c_str(), update, rule);
    for (const std::int64_t kib : {4, 256, 65536}) benchmark->Arg(kib * 256);
  }
  return true;
}();

}  // namespace
}  // namespace syncopate
