// The optimizer that a command line chooses, for the parameters of a network.
#pragma once

#include <memory>

#include "options.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::train {

struct Network;

/// Of gradients that come without their momentum. What is not given has the optimizer's defaults; the library refuses
/// what the optimizer does not take.
[[nodiscard]] OptimizerOptions optimizer_options(const Options& options);
/// The options that choose a rule: "--optimizer sgd --nesterov" of "nesterov".
[[nodiscard]] std::string words_of_rule(const std::string& rule);
/// In large tensors libtorch's threads share the work. Layer-wise rules spare parameters of one dimension: biases, and
/// the factors of norms. `network` must outlive it.
[[nodiscard]] std::unique_ptr<Optimizer> optimizer_for(const Network& network, OptimizerOptions options);

}  // namespace syncopate::train
