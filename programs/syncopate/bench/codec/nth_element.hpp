// The contender of selections: std::nth_element on an index vector, and pairs of index and value, as a user writes it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "syncopate/tooling/codec_loopback.hpp"

namespace syncopate::tools::bench {

class NthElement final {
 public:
  /// Selects the `selected` largest elements, with or without a residual of the others.
  NthElement(std::size_t elements, std::size_t selected, bool keeps_residual);
  /// Afterwards `gradient` holds what was decoded.
  LoopbackStep step(std::span<float> gradient);

 private:
  void encode(std::span<const float> gradient);
  void decode(std::span<float> gradient) const;

  struct Pair {
    std::uint32_t index;
    float value;
  };
  std::vector<std::uint32_t> order_;
  std::vector<float> residual_;  ///< empty without
  std::vector<Pair> packet_;
};

}  // namespace syncopate::tools::bench
