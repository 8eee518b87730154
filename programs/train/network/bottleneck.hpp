// Residual networks of bottleneck blocks, version 1.5: strides in the 3x3 (He, Zhang, Ren, Sun 2016, table 1).
#pragma once

#include <array>

#include "network/network.hpp"

namespace syncopate::train {

/// A 7x7 convolution, four stages with 256, 512, 1024, 2048 channels, global average, linear. `blocks` counts the
/// blocks of each stage.
[[nodiscard]] Network build_bottleneck_resnet(Builder& builder, const std::array<int, 4>& blocks, int classes);

}  // namespace syncopate::train
