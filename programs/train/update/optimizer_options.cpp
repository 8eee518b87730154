// Converts options of the command line to an optimizer's rule and hyperparameters.
#include "require.hpp"
#include "update/optimizer.hpp"

namespace syncopate::train {
namespace {

/// SGD is three rules of the catalogue, chosen by the options.
std::string rule_of(const Options& o) {
  if (o.optimizer != "sgd") return o.optimizer;
  if (o.nesterov) return "nesterov";
  return o.momentum == 0.0 ? "sgd" : "momentum";
}

}  // namespace

std::string words_of_rule(const std::string& rule) {
  if (rule == "sgd") return "--optimizer sgd --momentum 0";
  if (rule == "nesterov") return "--optimizer sgd --nesterov";
  return "--optimizer " + (rule == "momentum" ? "sgd" : rule);
}

OptimizerOptions optimizer_options(const Options& o) {
  require(o.optimizer != "momentum" && o.optimizer != "nesterov",
          "--optimizer {}; allowed: --optimizer sgd with --momentum, and --nesterov", o.optimizer);
  OptimizerOptions result{.rule = rule_of(o)};
  const auto give = [&](const char* name, const std::optional<double>& value) {
    if (value) result.hyperparameters.emplace_back(name, *value);
  };
  if (result.rule != "sgd") give("momentum", o.momentum);
  give("weight_decay", o.weight_decay);
  give("beta1", o.beta1);
  give("beta2", o.beta2);
  give("epsilon", o.epsilon);
  give("trust", o.trust);
  return result;
}

}  // namespace syncopate::train
