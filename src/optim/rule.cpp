// Rules by name, and the rate of a step.
#include "optim/rule.hpp"

#include <limits>

#include "base/named.hpp"

namespace syncopate::optim {

const Rule& rule_named(std::string_view name) { return base::entry_named("optimizer", name, rules()); }

float Step::rate() const {
  const double product = at.rate * trust;
  constexpr float kMost = std::numeric_limits<float>::max();
  return product > kMost ? kMost : static_cast<float>(product);
}

}  // namespace syncopate::optim
