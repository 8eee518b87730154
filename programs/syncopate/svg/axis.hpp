// An axis: values on a range of coordinates, linear or logarithmic, with round ticks.
#pragma once

#include <vector>

namespace syncopate::tools::svg {

struct Axis {
  double low = 0, high = 1;   ///< values at the ends
  double from = 0, to = 1;    ///< coordinates of the ends
  std::vector<double> ticks;  ///< within [low, high]
  int digits = 0;             ///< decimals that a tick of a linear axis needs
  bool logarithmic = false;

  [[nodiscard]] double operator()(double value) const;
};

/// Steps of an axis: even steps of 1, 2 or 5 times a power of ten; or powers, of two for sizes and ranks, of ten for
/// the rest.
enum class Steps : unsigned char { linear, tens, twos };

/// A linear axis of about `wanted` ticks on [low, high]; `low` < `high` is made true by widening.
[[nodiscard]] Axis axis(double low, double high, int wanted);
/// An axis whose two ends are moved outward to ticks. Logarithmic ones need low > 0 and have about `wanted` at most.
[[nodiscard]] Axis round_axis(double low, double high, int wanted, Steps steps = Steps::linear);

}  // namespace syncopate::tools::svg
