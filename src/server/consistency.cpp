// Consistency models by name, and the decisions that follow from a rule.
#include "server/consistency.hpp"

#include <algorithm>

#include "base/require.hpp"
#include "base/shelf/parameters.hpp"

namespace syncopate {

std::vector<const server::Consistency*> Catalogue::consistencies() const {
  return base::joined(server::consistencies(), consistencies_);
}

Catalogue Catalogue::with(const server::Consistency& mine) const {
  Catalogue more = *this;
  base::add_entry<server::Consistency>("consistency", more.consistencies_, mine, consistencies());
  base::require(mine.rule != nullptr, "consistency {} has no rule; allowed: with one", mine.name);
  base::shelf::require_usual({"consistency", mine.name, mine.parameter, mine.parameter}, mine.parameters);
  return more;
}

}  // namespace syncopate

namespace syncopate::server {

bool must_fetch(const Rule& rule, const ClockView& clocks) noexcept {
  return rule.staleness && clocks.fetched < clocks.own - *rule.staleness && clocks.allowed < clocks.own;
}

Clock last_step_of(const Rule& rule, const ServerView& view) {
  return rule.last_step ? std::clamp<Clock>(rule.last_step(view), 0, kMostClock) : 0;
}

bool travels(const Rule& rule, const ClockView& clocks) {
  if (must_fetch(rule, clocks) || clocks.sent < clocks.wanted) return true;
  return rule.travels_early && rule.travels_early(clocks);
}

Rule rule_of(std::string_view text, const Catalogue& catalogue) {
  const auto [entry, parameter] =
      base::shelf::entry_and_parameter<Consistency>("consistency", text, catalogue.consistencies());
  Rule rule = entry->rule(
      base::shelf::numbers_of({"consistency", entry->name, parameter, entry->parameter}, entry->parameters));
  base::require(!rule.part || rule.travels_early, "consistency {} has part and no travels_early; allowed: with it",
                text);
  return rule;
}

}  // namespace syncopate::server
