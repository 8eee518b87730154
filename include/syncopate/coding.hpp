// The coding of gradients: the options that a Synchronizer, a Combiner and a TableWorker have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "syncopate/feedback.hpp"

namespace syncopate {

/// How gradients become packets. tooling/settings.hpp has a table of these options: the command line, Python, the
/// comparison of ranks and docs/settings.md follow from it.
struct CodingOptions {
  std::string codec = "none";  ///< a name from shelf compress/codec, with its parameter: "name:parameter"
  FeedbackOptions feedback{};
  std::size_t dense_below = 4096;  ///< gradients with fewer elements are sent as they are, unless the codec only rounds
  std::uint64_t seed = 0;          ///< for codecs that use random numbers
};

}  // namespace syncopate
