// Consistency models by name, and the decisions that follow from a rule.
#include "server/consistency.hpp"

#include "base/shelf/parameters.hpp"

namespace syncopate::server {

bool must_fetch(const Rule& rule, const ClockView& clocks) noexcept {
  return rule.staleness && clocks.fetched < clocks.own - *rule.staleness;
}

bool may_go_on(const Rule& rule, const ClockView& clocks) noexcept {
  return !rule.staleness || clocks.least >= clocks.own - *rule.staleness;
}

bool travels(const Rule& rule, const ClockView& clocks) {
  if (must_fetch(rule, clocks) || clocks.sent < clocks.wanted) return true;
  return rule.travels_early && rule.travels_early(clocks);
}

Rule rule_of(std::string_view text) {
  const auto [entry, parameter] = base::shelf::entry_and_parameter("consistency", text, consistencies());
  return entry->rule(parameter);
}

}  // namespace syncopate::server
