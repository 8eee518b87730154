// Quantising codecs and elements for them: what their tests share.
#pragma once

#include <cmath>

#include "base/random.hpp"
#include "compress/coders.hpp"

namespace syncopate::compress::test {

inline const std::vector<std::string> kQuantising{"qsgd:2", "qsgd:4", "qsgd:8", "terngrad", "int8", "onebit"};
inline const std::vector<std::string> kSound{"int8", "onebit"};  ///< those with feedback

/// Normal, of mean 0 and variance 1.
inline float normal(std::uint64_t stream, std::uint64_t i) {
  const base::CounterRandom random{stream};
  return static_cast<float>(std::sqrt(-2 * std::log(1 - random.uniform(2 * i))) *
                            std::cos(6.283185307179586 * random.uniform(2 * i + 1)));
}

}  // namespace syncopate::compress::test
