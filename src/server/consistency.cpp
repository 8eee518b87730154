// Consistency models by name, and the decisions that follow from a rule.
#include "server/consistency.hpp"

#include "base/shelf/parameters.hpp"

namespace syncopate::server {

bool must_fetch(const Rule& rule, const Moment& moment) noexcept {
  return rule.staleness && moment.fetched < moment.own - *rule.staleness;
}

bool may_go_on(const Rule& rule, const Moment& moment) noexcept {
  return !rule.staleness || moment.least >= moment.own - *rule.staleness;
}

bool travels(const Rule& rule, const Moment& moment) {
  if (must_fetch(rule, moment) || moment.sent < moment.wanted) return true;
  return rule.travels_early && rule.travels_early(moment);
}

Rule rule_of(std::string_view text) {
  const auto [entry, parameter] = base::shelf::entry_and_parameter("consistency", text, consistencies());
  return entry->rule(parameter);
}

}  // namespace syncopate::server
