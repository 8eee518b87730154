// Residual networks for 32x32 images (He et al. 2016, section 4.2), with shortcuts that have no parameters (option A).
#pragma once

#include "network/network.hpp"

namespace syncopate::train {

/// Depth 6n+2: a 3x3 convolution, three stages of n blocks with 16, 32, 64 channels, global average, linear.
[[nodiscard]] Network build_resnet(Builder& builder, int blocks_per_stage, int classes);

}  // namespace syncopate::train
