// AlexNet with two groups (Krizhevsky, Sutskever, Hinton 2012), without dropout, and its first layer for small images.
#pragma once

#include "network/network.hpp"

namespace syncopate::train {

/// The first convolution and the linear layers depend on the size of the images.
struct AlexNetShape {
  int kernel = 11, stride = 4;  ///< of the first convolution
  bool same = false;            ///< it pads
  int side = 6;                 ///< of the images before the linear layers; others are pooled to it
};

[[nodiscard]] Network build_alexnet(Builder& builder, const AlexNetShape& shape, int classes);

}  // namespace syncopate::train
