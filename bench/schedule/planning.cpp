// bench_schedule: how long planning and simulating take: the optimum of many layers, and steps of many ranks.
//
// Layers and table are those of the tests: sizes up to 400 KB in no order, a measured table of 266 points.
// Arguments: those of Google Benchmark.
#include <benchmark/benchmark.h>

#include "schedule/policy.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {
namespace {

schedule::Timeline layers(std::size_t count) {
  schedule::Timeline timeline{.forward_s = 0.1, .layers = {}};
  for (std::size_t i = 0; i < count; ++i)
    timeline.layers.push_back({"layer", (i * 7919) % 100003 + 1, 1e-4 + 1e-6 * static_cast<double>(i % 97)});
  return timeline;
}

schedule::Cost table_of_266_points() {
  schedule::CostInputs inputs;
  for (double i = 0; i < 266; ++i) inputs.points.push_back({4096 * i, 1e-3 + 1e-8 * 4096 * i + (i > 128 ? 1e-3 : 0)});
  return schedule::cost_model_named("table").cost(inputs);
}

void plan(benchmark::State& state, const char* policy) {
  const schedule::Timeline timeline = layers(static_cast<std::size_t>(state.range(0)));
  const schedule::Cost cost = table_of_266_points();
  for (auto _ : state) benchmark::DoNotOptimize(schedule::policy_named(policy).partition(timeline, {.cost = cost}));
}
BENCHMARK_CAPTURE(plan, exact_dp, "exact_dp")->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, mg_wfbp, "mg_wfbp")->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, online, "online")->Arg(1000)->Unit(benchmark::kMillisecond);

/// ResNet-50's 107 layers on the simulated cluster of MG-WFBP: one step of each policy.
void simulate(benchmark::State& state, const SimulateOptions& options) {
  const Profile profile = derive_profile("resnet50", layers_of_architecture("resnet50"), 1.2e12, 32);
  const Cluster cluster{
      .ranks = static_cast<int>(state.range(0)), .inter = LinkCost{45.25e-6, 9.934e-10, 2.5e-9}, .algorithm = "ring"};
  for (auto _ : state) benchmark::DoNotOptimize(simulate_training(profile, cluster, options));
}
void equal_ranks(benchmark::State& state) { simulate(state, {}); }
BENCHMARK(equal_ranks)->Arg(64)->Arg(4096)->Unit(benchmark::kMillisecond);
void ranks_with_noise(benchmark::State& state) {
  simulate(state, {.policies = {"exact_dp"}, .noise = 0.3, .steps = 1});
}
BENCHMARK(ranks_with_noise)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);
void ranks_with_noise_by_segments(benchmark::State& state) {
  simulate(state, {.policies = {"exact_dp"}, .noise = 0.3, .steps = 1, .segments = true});
}
BENCHMARK(ranks_with_noise_by_segments)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncopate
