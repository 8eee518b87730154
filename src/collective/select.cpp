// Selection: an algorithm by name, or the one that takes the least time as measured, else by its cost law.
#include <algorithm>
#include <map>

#include "base/named.hpp"
#include "base/require.hpp"
#include "collective/algorithm.hpp"
#include "collective/measured.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kNames[] = {"allreduce", "reduce_scatter", "allgather", "allgather_v", "broadcast",
                                       "reduce",    "gather",         "scatter",   "alltoall",    "barrier"};
static_assert(std::size(kNames) == std::size(kCollectives));
}  // namespace

std::string_view name_of(Collective collective) noexcept { return kNames[static_cast<int>(collective)]; }
Collective collective_named(std::string_view name) { return base::value_named<Collective>("collective", name, kNames); }

std::vector<PlanRank> rank_algorithms(const PlanRequest& request, const NetworkCost& cost) {
  std::vector<PlanRank> ranked;
  for (const collective::Choice& choice : collective::rank_choices(request, cost))
    ranked.push_back({std::string(choice.algorithm->name), choice.law_s, choice.measured_s});
  return ranked;
}

}  // namespace syncopate

namespace syncopate::collective {

namespace {

// A ring takes 1.05 of its law's bandwidth term. Halving-doubling's ranks change partners and meet at ports: 4 ranks
// take 1.1 to 1.25 of it, 8 ranks 1.16 (256 KiB) to 1.36 (4 MiB), 16 ranks 1.32 to 1.45; at a few KiB there is no
// difference. `syncopate bench allreduce --ranks 16 --lab 100mbit --algorithm ring,halving_doubling`
constexpr double kSteadyBonus = 1.15;
// Memory has no ports, but lanes to one neighbour stay in the cache. Between vectors there is nothing to stay.
constexpr double kSteadyBonusInMemory = 1.05;

constexpr double bonus_of_steady(Medium medium) noexcept {
  if (medium == Medium::network) return kSteadyBonus;
  return medium == Medium::memory ? kSteadyBonusInMemory : 1;
}

std::vector<const Algorithm*> offering(Collective collective) {
  std::vector<const Algorithm*> found;
  std::ranges::copy_if(algorithms(), std::back_inserter(found), [&](auto* entry) { return entry->offers(collective); });
  return found;
}

void check(const LinkCost& link) {
  for (const double value : {link.alpha_s, link.beta_s_per_byte, link.gamma_s_per_byte})
    base::require(value >= 0 && value < 1e9, "a cost of {} is given; allowed: alpha, beta and gamma from 0 on", value);
}

void check(const PlanRequest& request, const NetworkCost& cost) {
  base::require(request.ranks >= 1 && request.ranks <= 65536, "ranks is {}; allowed: 1 to 65536", request.ranks);
  base::require(request.tuning.blocks <= 65536, "blocks is {}; allowed: 0 (the best) to 65536", request.tuning.blocks);
  base::require(request.root >= 0 && request.root < request.ranks, "root is {}; allowed: 0 to {} (ranks - 1)",
                request.root, request.ranks - 1);
  base::require(request.hosts.empty() || request.hosts.size() == static_cast<std::size_t>(request.ranks),
                "hosts has {} numbers; allowed: none, or one per rank ({})", request.hosts.size(), request.ranks);
  check(cost.inter);
  check(cost.intra);
}

Shape shape_of(const PlanRequest& request) {
  return {.collective = request.collective,
          .size = static_cast<std::uint32_t>(request.ranks),
          .root = static_cast<std::uint32_t>(has_root(request.collective) ? request.root : 0),
          .hosts = hosts_of(request)};
}

Load load_of(const PlanRequest& request, const Shape& shape, const NetworkCost& cost) {
  const std::uint64_t bytes = request.collective == Collective::barrier ? kBarrierBytes : request.bytes;
  return {static_cast<double>(bytes), shape.hosts.empty() ? cost.intra : cost.inter, cost.intra};
}

Choice settled(const Algorithm& algorithm, const Shape& shape, const Tuning& tuning, const Load& load) {
  Choice choice{.algorithm = &algorithm, .shape = shape};
  choice.shape.hosts.clear();
  if (shape.size == 1) return choice;
  choice.shape.hosts = shape.hosts;  // for settle alone, unless it keeps them
  if (algorithm.settle != nullptr) algorithm.settle(choice.shape, tuning, load);
  choice.law_s = algorithm.seconds(choice.shape, load);
  if (choice.shape.inner.empty()) choice.shape.hosts.clear();
  return choice;
}

// What was measured comes first; what was not does not compete with it, for a law may promise what no network keeps.
class Before final {
 public:
  explicit Before(const LinkCost& link) : bonus_(bonus_of_steady(link.medium)) {}

  bool operator()(const Choice& a, const Choice& b) const {
    if (a.measured_s && b.measured_s) return *a.measured_s < *b.measured_s;
    if (a.measured_s || b.measured_s) return a.measured_s.has_value();
    return preference(a) < preference(b);
  }

 private:
  // In single precision: laws that say the same in other words shall tie, and the first name wins.
  [[nodiscard]] float preference(const Choice& choice) const {
    return static_cast<float>(choice.algorithm->steady ? choice.law_s / bonus_ : choice.law_s);
  }

  double bonus_;
};

std::vector<Choice> ranked(const Shape& shape, const Tuning& tuning, const Load& load, bool with_composed) {
  std::vector<Choice> choices;
  for (const Algorithm* entry : offering(shape.collective)) {
    if (entry->composed && !with_composed) continue;
    Choice choice = settled(*entry, shape, tuning, load);
    if (entry->sensible == nullptr || shape.size == 1 || entry->sensible(choice.shape))
      choices.push_back(std::move(choice));
  }
  std::ranges::stable_sort(choices, Before(load.link));
  return choices;
}

std::vector<Choice> ranked(const PlanRequest& request, const Tuning& tuning, const NetworkCost& cost) {
  const Shape shape = shape_of(request);
  const Load load = load_of(request, shape, cost);
  std::vector<Choice> choices = ranked(shape, tuning, load, true);
  if (shape.size > 1 && covers(cost, shape)) {
    for (Choice& choice : choices) {
      const Law law = [&](double bytes) {
        return settled(*choice.algorithm, shape, tuning, {bytes, load.link, load.local}).law_s;
      };
      choice.measured_s = measured_seconds(cost, {shape.collective, choice.algorithm->name, load.bytes}, law);
    }
    std::ranges::stable_sort(choices, Before(load.link));
  }
  return choices;
}

}  // namespace

std::vector<std::uint32_t> hosts_of(const PlanRequest& request) {
  std::vector<std::uint32_t> hosts;
  std::map<std::uint32_t, std::uint32_t> numbers;
  const auto ranks = static_cast<std::uint32_t>(request.ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t per_host = request.ranks_per_host == 0 ? ranks : request.ranks_per_host;
    const std::uint32_t given = request.hosts.empty() ? rank / per_host : request.hosts[rank];
    hosts.push_back(numbers.try_emplace(given, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return numbers.size() > 1 ? hosts : std::vector<std::uint32_t>{};
}

const Algorithm& algorithm_named(std::string_view name, Collective collective) {
  const auto candidates = offering(collective);
  const auto found = std::ranges::find(candidates, name, [](auto* entry) { return entry->name; });
  if (found != candidates.end()) return **found;
  std::vector<std::string_view> names{"auto"};
  for (const Algorithm* entry : candidates) names.push_back(entry->name);
  throw Misuse(fmt::format("no algorithm '{}' for {}; allowed: {}", name, name_of(collective), fmt::join(names, ", ")));
}

const Algorithm& entry_named(std::string_view name) {
  return **std::ranges::find(algorithms(), name, [](auto* entry) { return entry->name; });
}

Choice choose(const PlanRequest& request, const NetworkCost& cost) {
  check(request, cost);
  if (request.algorithm == "auto") return ranked(request, request.tuning, cost).front();
  const Shape shape = shape_of(request);
  const Load load = load_of(request, shape, cost);
  return settled(algorithm_named(request.algorithm, request.collective), shape, request.tuning, load);
}

std::vector<Choice> rank_choices(const PlanRequest& request, const NetworkCost& cost) {
  check(request, cost);
  return ranked(request, {}, cost);
}

Choice choose_part(std::string_view name, const Shape& shape, const Tuning& tuning, const Load& load) {
  if (name == "auto") return ranked(shape, tuning, load, false).front();
  const Algorithm& algorithm = algorithm_named(name, shape.collective);
  base::require(!algorithm.composed, "'{}' cannot be part of another algorithm; allowed: any that is not composed",
                name);
  return settled(algorithm, shape, tuning, load);
}

Plan build_plan(const Choice& choice, std::uint32_t rank) {
  Shape shape = choice.shape;
  shape.rank = rank;
  return shape.size == 1 ? Plan{} : choice.algorithm->build(shape);
}

}  // namespace syncopate::collective
