// Codec choice: the ways that are allowed, the rule that chooses among them, and the choice for each bucket by a law.
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

std::vector<std::string> auto_codecs(std::string_view text) {
  if (!text.starts_with(kAuto)) return {};
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

std::vector<std::string> codec_ways(std::string_view text) {
  std::vector<std::string> ways = auto_codecs(text);
  if (ways.empty()) ways.emplace_back(text);
  return ways;
}

std::size_t quickest_way(const std::vector<std::string>& ways, const std::vector<double>& seconds, double at_least) {
  base::require(!ways.empty() && ways.size() == seconds.size(), "{} times of {} codecs; allowed: one for each",
                seconds.size(), ways.size());
  const auto quickest = static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin());
  const auto none = static_cast<std::size_t>(std::ranges::find(ways, "none") - ways.begin());
  return none < ways.size() && seconds[quickest] > (1 - at_least) * seconds[none] ? none : quickest;
}

double exchanges_end_s(const std::vector<double>& ready_s, const std::vector<double>& cost_s) {
  base::require(ready_s.size() == cost_s.size(), "{} buckets are ready, and {} have costs; allowed: the same number",
                ready_s.size(), cost_s.size());
  double end_s = 0;
  for (std::size_t i = 0; i < ready_s.size(); ++i) end_s = std::max(end_s, ready_s[i]) + cost_s[i];
  return end_s;
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
    choice.way = quickest_way(ways, choice.predicted_s);
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace syncopate
