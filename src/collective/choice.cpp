// Choices: resolves the fields that a caller left open, and sorts by the preference of "auto".
#include "collective/choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/require.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate::collective {

namespace {

// Measured on TCP: a ring takes 1.05 times the bandwidth term of its law. Halving-doubling takes 1.1 to 1.25 times on 4
// ranks, 1.16 (256 KiB) to 1.36 (4 MiB) on 8 and 1.32 to 1.45 on 16, because its ranks change partners and compete for
// ports; at a few KiB there is no difference.
// `syncopate bench allreduce --ranks 16 --lab 100mbit --algorithm ring,halving_doubling`
constexpr double kSteadyBonus = 1.15;
// Shared memory has no ports, but the ring buffers of a single neighbour stay in the cache. Vectors have no ring
// buffers.
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

// Measured algorithms come before all others: a law may promise a speed that no network reaches.
class Before final {
 public:
  explicit Before(const LinkCost& link) : bonus_(bonus_of_steady(link.medium)) {}

  bool operator()(const Choice& a, const Choice& b) const {
    if (a.measured_s && b.measured_s) return *a.measured_s < *b.measured_s;
    if (a.measured_s || b.measured_s) return a.measured_s.has_value();
    return preference(a) < preference(b);
  }

 private:
  // In single precision, so that laws that differ only by rounding tie; then the first name wins.
  [[nodiscard]] float preference(const Choice& choice) const {
    return static_cast<float>(choice.algorithm->steady ? choice.law_s / bonus_ : choice.law_s);
  }

  double bonus_;
};

}  // namespace

const Algorithm& algorithm_named(std::string_view name, Collective collective) {
  const auto candidates = offering(collective);
  const auto found = std::ranges::find(candidates, name, [](auto* entry) { return entry->name; });
  if (found != candidates.end()) return **found;
  std::vector<std::string_view> names{"auto"};
  for (const Algorithm* entry : candidates) names.push_back(entry->name);
  throw Misuse(unknown_name(fmt::format("{} algorithm", name_of(collective)), name, names));
}

const Algorithm& entry_named(std::string_view name) {
  return **std::ranges::find(algorithms(), name, [](auto* entry) { return entry->name; });
}

Choice resolved(const Algorithm& algorithm, const Shape& shape, const Tuning& tuning, const Load& load,
                PortSharing& sharing) {
  Choice choice{.algorithm = &algorithm, .shape = shape};
  choice.shape.hosts.clear();
  if (shape.size == 1) return choice;
  choice.shape.hosts = shape.hosts;  // only `resolve` needs it, unless it keeps it
  if (algorithm.resolve != nullptr) algorithm.resolve(choice.shape, tuning, load);
  Load shared = load;
  if (load.link.beta_s_per_byte > 0)
    shared.link.beta_s_per_byte *= sharing.factor(algorithm, choice.shape, shape.hosts);
  choice.law_s = algorithm.seconds(choice.shape, shared);
  if (choice.shape.inner.empty()) choice.shape.hosts.clear();
  return choice;
}

void sort_by_preference(std::vector<Choice>& choices, const LinkCost& link) {
  std::ranges::stable_sort(choices, Before(link));
}

std::vector<Choice> ranked(const Shape& shape, const Tuning& tuning, const Load& load, Composed composed,
                           PortSharing& sharing) {
  std::vector<Choice> choices;
  for (const Algorithm* entry : offering(shape.collective)) {
    if (entry->composed && composed == Composed::without) continue;
    Choice choice = resolved(*entry, shape, tuning, load, sharing);
    if (entry->sensible == nullptr || shape.size == 1 || entry->sensible(choice.shape))
      choices.push_back(std::move(choice));
  }
  sort_by_preference(choices, load.link);
  return choices;
}

Plan build_plan(const Choice& choice, std::uint32_t rank) {
  Shape shape = choice.shape;
  shape.rank = rank;
  return shape.size == 1 ? Plan{} : choice.algorithm->build(shape);
}

replay::Plans plans_of(const Choice& choice) {
  return {choice.shape.collective, choice.shape.size, [&](std::uint32_t rank) { return build_plan(choice, rank); }};
}

Choice choose_part(std::string_view name, const Shape& shape, const Tuning& tuning, const Load& load) {
  PortSharing sharing;  // a part's ranks have ports of their own, or share one host
  if (name == "auto") return ranked(shape, tuning, load, Composed::without, sharing).front();
  const Algorithm& algorithm = algorithm_named(name, shape.collective);
  base::require(!algorithm.composed, "'{}' cannot be part of another algorithm; allowed: any that is not composed",
                name);
  return resolved(algorithm, shape, tuning, load, sharing);
}

}  // namespace syncopate::collective
