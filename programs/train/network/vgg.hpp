// VGG for photographs (Simonyan, Zisserman 2015, table 1), without dropout.
#pragma once

#include <array>

#include "network/network.hpp"

namespace syncopate::train {

/// Five stages of 3x3 convolutions with 64, 128, 256, 512, 512 channels, each of which halves the image; three linear
/// layers. `convolutions` counts those of each stage.
[[nodiscard]] Network build_vgg(Builder& builder, const std::array<int, 5>& convolutions, int classes);

}  // namespace syncopate::train
