// Scale: values to coordinates along one axis of a figure, linear or logarithmic, with its round ticks.
#pragma once

#include <vector>

namespace syncopate::tools::figure {

struct Scale {
  double low = 0, high = 1;  ///< values at the ends
  double from = 0, to = 1;   ///< coordinates of the ends
  bool logarithmic = false;
  std::vector<double> ticks;
  [[nodiscard]] double operator()(double value) const;
};

/// What a logarithmic axis counts in: powers of two for sizes and ranks, of ten for the rest.
enum class Steps : unsigned char { linear, tens, twos };

/// The smallest scale of round ends that shows low..high, at most about `most` ticks. Logarithmic ones need low > 0.
[[nodiscard]] Scale round_scale(double low, double high, Steps steps, int most);

}  // namespace syncopate::tools::figure
