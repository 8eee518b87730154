// Averages: what gradients, or weights, must be after each step, in double precision from all ranks' inputs.
#pragma once

#include <string>
#include <vector>

#include "random/training.hpp"

namespace syncopate::test {

/// weight -= kRate * average.
inline constexpr float kRate = 0.5F;

class Averages final {
 public:
  Averages(const Training& training, int rank);
  /// Takes account of a step.
  void take(const Backward& backward);
  /// The first element of layer i that is wrong, in words; empty if none is.
  [[nodiscard]] std::string flaw_in(const Buffer& result, std::size_t i) const;

 private:
  /// One layer's averages (or weights, if those are what steps end in).
  struct Layer {
    std::vector<double> real;
    std::vector<std::int64_t> whole;
    double tolerance = 0;
  };

  void average(const Backward& backward, std::size_t i, Layer& layer) const;
  [[nodiscard]] double scale_of(const std::vector<Layer>& averages) const;
  [[nodiscard]] double rounding(std::size_t i, double most) const;

  const Training& training_;
  int rank_;
  std::vector<Layer> layers_;
};

}  // namespace syncopate::test
