// The checks of a table of rows, and the first values of its rows.
#include "server/job/row_rules.hpp"

#include <algorithm>
#include <cmath>

#include "base/require.hpp"

namespace syncopate::server {

namespace {

constexpr double kMostScale = 1e30;

optim::Hyperparameters with_of(const optim::Rule& rule, const RowOptions& options) {
  auto with = optim::hyperparameters_of(rule, options.hyperparameters);
  const auto is_decay = [](const auto& one) { return one.first == "weight_decay"; };
  if (std::ranges::none_of(options.hyperparameters, is_decay)) with.weight_decay = 0;  // whatever is usual for the rule
  return with;
}

}  // namespace

RowRules::RowRules(const RowOptions& options, std::size_t index, const Catalogue& catalogue)
    : name(options.name),
      width(options.width),
      rule(optim::rule_named(options.rule, catalogue)),
      with(with_of(rule, options)),
      seed(options.seed),
      table(index),
      scale(static_cast<float>(options.scale)) {
  base::require(width >= 1 && width <= kMostRowWidth, "rows of table '{}' have {} floats; allowed: 1 to {}", name,
                width, kMostRowWidth);
  base::require(options.scale >= 0 && options.scale <= kMostScale,
                "rows of table '{}' have a scale of {}; allowed: 0 to {:g}", name, options.scale, kMostScale);
  base::require(rule.trust == nullptr,
                "rows of table '{}' with rule {}, whose trust ratio needs the norm of a whole tensor; allowed: rules "
                "that treat every weight by itself, as sgd, adagrad, adam",
                name, options.rule);
}

/// 24 bits of each draw, so that every value is exact in f32 before it is scaled.
void RowRules::initialise(std::uint64_t id, float* into) const {
  const base::CounterRandom random{seed, table, id};
  for (std::size_t i = 0; i < width; ++i)
    into[i] = (static_cast<float>(random.bits(i) >> 40) * 0x1p-23F - 1.0F) * scale;
}

std::vector<RowRules> row_rules_of(const std::vector<RowOptions>& tables, const Catalogue& catalogue) {
  std::vector<RowRules> rules;
  for (const RowOptions& options : tables) rules.emplace_back(options, rules.size(), catalogue);
  return rules;
}

}  // namespace syncopate::server
