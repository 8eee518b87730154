// Rules by name, and the rate of a step.
#include "optim/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/named.hpp"
#include "base/require.hpp"

namespace syncopate {

std::vector<const optim::Rule*> Catalogue::rules() const { return base::joined(optim::rules(), rules_); }

Catalogue Catalogue::with(const optim::Rule& mine) const {
  Catalogue more = *this;
  base::add_entry<optim::Rule>("optimizer", more.rules_, mine, rules());
  base::require(mine.update != nullptr && mine.state.size() <= optim::kMostStates,
                "optimizer {} has {} states and {} update; allowed: at most {} states, and an update", mine.name,
                mine.state.size(), mine.update == nullptr ? "no" : "an", optim::kMostStates);
  return more;
}

}  // namespace syncopate

namespace syncopate::optim {

namespace {

std::string names_of(std::span<const Hyperparameter> all) {
  std::string text;
  for (const Hyperparameter& one : all) text += fmt::format("{}{}", text.empty() ? "" : ", ", one.name);
  return text;
}

bool holds(const Limits& limits, double value) {
  const bool above = limits.open_least ? value > limits.least : value >= limits.least;
  const bool below = limits.open_most ? value < limits.most : value <= limits.most;
  return above && below;
}

std::string text_of(const Limits& limits) {
  const std::string least = fmt::format("{} {}", limits.open_least ? "above" : "from", limits.least);
  return fmt::format("{} {} {}", least, limits.open_most ? "to below" : "to", limits.most);
}

}  // namespace

Hyperparameters hyperparameters_of(const Rule& rule, std::span<const std::pair<std::string, double>> given) {
  Hyperparameters result;
  for (const Hyperparameter& one : rule.takes) result.*one.field = one.usual;
  for (auto at = given.begin(); at != given.end(); ++at) {
    const auto& [name, value] = *at;
    const auto same = [&](const auto& other) { return other.first == name; };
    base::require(std::none_of(given.begin(), at, same), "{} is given twice; allowed: once", name);
    const auto one = std::ranges::find(rule.takes, std::string_view(name), &Hyperparameter::name);
    base::require(one != rule.takes.end(), "optimizer {} takes no {}; it takes {}", rule.name, name,
                  names_of(rule.takes));
    base::require(holds(one->limits, value), "{} of optimizer {} is {}; allowed: {}", name, rule.name, value,
                  text_of(one->limits));
    result.*one->field = value;
  }
  return result;
}

const Rule& rule_named(std::string_view name, const Catalogue& catalogue) {
  return base::entry_named<Rule>("optimizer", name, catalogue.rules());
}

float Step::rate() const {
  const double product = at.rate * trust;
  constexpr float kMost = std::numeric_limits<float>::max();
  return product > kMost ? kMost : static_cast<float>(product);
}

}  // namespace syncopate::optim
