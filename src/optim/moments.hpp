// The moments of a gradient, shared by adam, adamw and lamb: their factors in a step, and their state.
#pragma once

#include <string_view>

#include "kernel/update.hpp"
#include "optim/rule.hpp"

namespace syncopate::optim {

inline constexpr std::string_view kMoments[] = {"mean", "square"};

/// With the bias of the first steps corrected: mean_factor = 1 / (1 - beta1^t), root_factor = 1 / sqrt(1 - beta2^t).
/// Computed in f64 and rounded once.
[[nodiscard]] kernel::Moments moments_of(const Step& step);
[[nodiscard]] kernel::WithMoments memory_of(const Part& part);

}  // namespace syncopate::optim
