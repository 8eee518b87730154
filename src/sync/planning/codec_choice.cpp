// Codec choice: of the ways that are allowed, the one with which a bucket's exchange is predicted to end first.
#include <algorithm>

#include "base/require.hpp"
#include "sync/planning/planner.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {

namespace {

constexpr std::string_view kAuto = "auto:";

/// The buckets of a policy that goes by sizes, in forward order.
schedule::Partition partition_of(std::span<const Gradient> gradients, const SynchronizerOptions& options, int ranks) {
  const schedule::Policy& policy = schedule::policy_named(options.policy, options.catalogue);
  std::vector<std::string_view> allowed;
  for (const schedule::Policy* each : options.catalogue.policies())
    if (each->needs == schedule::Needs::sizes) allowed.push_back(each->name);
  base::require(policy.needs == schedule::Needs::sizes,
                "a choice among codecs with policy {}, whose buckets depend on what exchanges take; allowed: {}",
                policy.name, fmt::join(allowed, ", "));
  schedule::Timeline sizes;
  for (const Gradient& gradient : gradients)
    sizes.layers.push_back({gradient.name, gradient.elements * size_of(gradient.dtype), 0});
  const schedule::PolicyOptions details{.fusion_bytes = options.fusion_bytes, .ranks = ranks};
  schedule::Partition partition =
      sync::planning::Planner(sizes, {options.policy, false, 0, options.catalogue}, details).partition();
  std::ranges::sort(partition, {}, &schedule::Bucket::first);
  return partition;
}

ExchangeLaw known_law(std::span<const Gradient> bucket, const SynchronizerOptions& options, const Cluster& cluster) {
  ExchangeLaw law = exchange_law(bucket, options, cluster);
  base::require(law.coding_is_known,
                "the cluster file has no coding times of codec {}; measure them with `syncopate fit --codec {}`",
                options.coding.codec, options.coding.codec);
  return law;
}

double seconds_of(const ExchangeCost& cost, std::uint64_t bytes) {
  schedule::CostInputs inputs;
  for (const auto& [size, seconds] : cost.table) inputs.points.push_back({size, seconds});
  return schedule::cost_model_named("table").cost(inputs)(static_cast<double>(bytes));
}

}  // namespace

std::vector<std::string> codec_ways(std::string_view text) {
  if (!text.starts_with(kAuto)) return {std::string(text)};
  std::vector<std::string> ways;
  for (std::size_t begin = kAuto.size(); begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    ways.emplace_back(text.substr(begin, end - begin));
    base::require(!ways.back().empty() && std::ranges::count(ways, ways.back()) == 1,
                  "codec '{}' names nothing, or one codec twice; allowed: auto:A+B+none", text);
    begin = end + 1;
  }
  return ways;
}

std::vector<CodecChoice> choose_codecs(std::span<const Gradient> gradients, const SynchronizerOptions& options,
                                       const Cluster& cluster, const ExchangeCostOf& cost_of) {
  const std::vector<std::string> ways = codec_ways(options.coding.codec);
  std::vector<CodecChoice> choices;
  for (const schedule::Bucket& bucket : partition_of(gradients, options, cluster.ranks)) {
    CodecChoice choice{.first = bucket.first, .last = bucket.last};
    const auto part = gradients.subspan(bucket.first, bucket.last - bucket.first + 1);
    for (const Gradient& gradient : part) choice.bytes += gradient.elements * size_of(gradient.dtype);
    for (const std::string& way : ways) {
      SynchronizerOptions with = options;
      with.coding.codec = way;
      choice.predicted_s.push_back(seconds_of(cost_of(known_law(part, with, cluster), choice.bytes), choice.bytes));
    }
    choice.way = static_cast<std::size_t>(std::ranges::min_element(choice.predicted_s) - choice.predicted_s.begin());
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace syncopate
