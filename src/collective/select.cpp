// Selection: an algorithm by name, or the one whose cost law promises the least time.
#include <algorithm>

#include "base/named.hpp"
#include "collective/algorithm.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kNames[] = {"allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "barrier"};
}

std::string_view name_of(Collective collective) noexcept { return kNames[static_cast<int>(collective)]; }
Collective collective_named(std::string_view name) { return base::value_named<Collective>("collective", name, kNames); }

}  // namespace syncopate

namespace syncopate::collective {

namespace {

// Four ranks at 1 Gbit/s, 1 to 100 MiB: a ring takes 1.05 of its law's bandwidth term, halving-doubling 1.1 to 1.25,
// because its ranks change partners and meet at ports (`syncopate bench allreduce --algorithm all`).
constexpr double kSteadyBonus = 1.05;

std::vector<const Algorithm*> offering(Collective collective) {
  std::vector<const Algorithm*> found;
  std::ranges::copy_if(algorithms(), std::back_inserter(found), [&](auto* entry) { return entry->offers(collective); });
  return found;
}

}  // namespace

const Algorithm& algorithm_named(std::string_view name, Collective collective) {
  const auto candidates = offering(collective);
  const auto found = std::ranges::find(candidates, name, [](auto* entry) { return entry->name; });
  if (found != candidates.end()) return **found;
  std::vector<std::string_view> names{"auto"};
  for (const Algorithm* entry : candidates) names.push_back(entry->name);
  throw Misuse(fmt::format("no algorithm '{}' for {}; allowed: {}", name, name_of(collective), fmt::join(names, ", ")));
}

const Algorithm& select(std::string_view name, const PlanRequest& request, const LinkCost& link) {
  if (name != "auto") return algorithm_named(name, request.collective);
  const auto candidates = offering(request.collective);
  const auto seconds = [&](const Algorithm* entry) {
    const double law = entry->seconds(request.collective, request.ranks, static_cast<double>(request.bytes), link);
    return entry->steady ? law / kSteadyBonus : law;
  };
  return **std::ranges::min_element(candidates, {}, seconds);
}

Shape shape_of(const PlanRequest& request, const Algorithm& algorithm, const LinkCost& link) {
  Shape shape{.collective = request.collective,
              .size = static_cast<std::uint32_t>(request.ranks),
              .root = static_cast<std::uint32_t>(request.root),
              .blocks = request.blocks};
  if (algorithm.blocks != nullptr && shape.blocks == 0)
    shape.blocks = algorithm.blocks(request.ranks, static_cast<double>(request.bytes), link);
  return shape;
}

}  // namespace syncopate::collective
