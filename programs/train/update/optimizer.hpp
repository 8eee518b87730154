// The optimizer of a network's parameters, as the command line chooses it.
#pragma once

#include <memory>

#include "options.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::train {

struct Network;

/// Options of the optimizer for gradients without momentum correction. Values that are not given have the optimizer's
/// defaults; the library refuses those that the optimizer does not have.
[[nodiscard]] OptimizerOptions optimizer_options(const Options& options);
/// The options that choose a rule: "--optimizer sgd --nesterov" for "nesterov".
[[nodiscard]] std::string words_of_rule(const std::string& rule);
/// libtorch's threads share the work of large tensors. Layer-wise rules skip parameters of one dimension: biases, and
/// the factors of norms. `network` must outlive the optimizer.
[[nodiscard]] std::unique_ptr<Optimizer> optimizer_for(const Network& network, OptimizerOptions options);

}  // namespace syncopate::train
