// GoogLeNet (Szegedy et al. 2015) without dropout, and its first layer for small images.
#pragma once

#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train {

/// The first convolution, which pads.
struct GoogLeNetStem {
  int kernel = 7, stride = 2;
};

/// ModelOptions::auxiliary adds the two auxiliary classifiers.
[[nodiscard]] Network build_googlenet(Builder& builder, const GoogLeNetStem& stem, const ModelOptions& options);

}  // namespace syncopate::train
