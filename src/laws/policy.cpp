// The laws of a merge policy, for drawn timelines.
#include "schedule/policy.hpp"

#include "base/random.hpp"
#include "base/require.hpp"
#include "laws/cases.hpp"

namespace syncopate {

namespace {

struct PolicyCase {
  schedule::Timeline timeline{};
  schedule::PolicyOptions options{};
};

PolicyCase drawn_case(std::uint64_t seed, std::size_t most_layers, bool has_times) {
  const base::CounterRandom random{seed};
  std::uint64_t counter = 0;
  const auto below = [&](std::size_t limit) -> std::size_t {
    return random.below(static_cast<std::uint32_t>(limit), counter++);
  };
  PolicyCase one;
  const std::size_t layers = 1 + below(most_layers);
  for (std::size_t layer = 0; layer < layers; ++layer)
    one.timeline.layers.push_back({.name = fmt::format("layer{}.{}", layer / 2, layer % 2 == 0 ? "weight" : "bias"),
                                   .bytes = 4 * (1 + below(1000)),
                                   .backward_s = has_times ? 1e-6 * static_cast<double>(1 + below(500)) : 0});
  one.options = {.fusion_bytes = 1 + below(16'000),
                 .ranks = static_cast<int>(2 + below(63)),
                 .first_fusion_bytes = below(2000),
                 .fuses_past = below(2) == 1};
  if (!has_times) return one;
  one.timeline.forward_s = 1e-6 * static_cast<double>(below(20'000));
  one.options.cost = schedule::Cost::affine(1e-6 * static_cast<double>(below(1000)), 1e-9);
  return one;
}

std::optional<BrokenLaw> broken_by_partition(const schedule::Policy& policy, const PolicyCase& one) {
  const auto& [timeline, options] = one;
  const schedule::Partition partition = policy.partition(timeline, options);
  const auto broken = [&](std::string law, const std::string& text) -> BrokenLaw {
    return {.law = std::move(law), .text = fmt::format("{} ({} layers)", text, timeline.layers.size())};
  };
  if (const std::string flaw = schedule::illegal(partition, timeline.layers.size()); !flaw.empty())
    return broken("every gradient once", flaw);
  if (policy.partition(timeline, options) != partition)
    return broken("equal buckets", "a second call returns other buckets");
  return std::nullopt;
}

}  // namespace

std::optional<BrokenLaw> check_policy(const schedule::Policy& policy, const PolicyCheck& with) {
  base::require(policy.partition != nullptr, "policy {} has no partition; allowed: with one", policy.name);
  base::require(with.most_layers >= 1, "at most {} layers; allowed: at least 1", with.most_layers);
  return laws::first_broken(fmt::format("policy {}", policy.name), with.seed, with.cases, [&](std::uint64_t seed) {
    const bool has_times = policy.needs != schedule::Needs::sizes || seed % 2 == 0;
    return broken_by_partition(policy, drawn_case(seed, with.most_layers, has_times));
  });
}

}  // namespace syncopate
