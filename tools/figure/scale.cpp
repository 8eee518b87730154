// Scale: choosing round ends and ticks.
#include "figure/scale.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate::tools::figure {

namespace {

Scale powers(double low, double high, double base, int most) {
  const auto exponent = [base](double value) { return std::log(value) / std::log(base); };
  const auto first = static_cast<int>(std::floor(exponent(low) + 1e-9));
  const auto last = std::max(static_cast<int>(std::ceil(exponent(high) - 1e-9)), first + 1);
  const int stride = std::max(1, (last - first + most - 1) / most);
  Scale scale{.low = std::pow(base, first), .high = std::pow(base, last), .logarithmic = true, .ticks = {}};
  for (int power = first; power <= last; power += stride) scale.ticks.push_back(std::pow(base, power));
  return scale;
}

Scale evenly(double low, double high, int most) {
  const double span = high > low ? high - low : 1;
  const double rough = span / most, magnitude = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * magnitude;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * magnitude >= rough) step = factor * magnitude;
  Scale scale{.low = std::floor(low / step + 1e-9) * step, .high = std::ceil(high / step - 1e-9) * step, .ticks = {}};
  if (scale.high <= scale.low) scale.high = scale.low + step;
  const auto count = static_cast<int>(std::lround((scale.high - scale.low) / step));
  for (int i = 0; i <= count; ++i) scale.ticks.push_back(scale.low + i * step);
  return scale;
}

}  // namespace

double Scale::operator()(double value) const {
  const double share = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + share * (to - from);
}

Scale round_scale(double low, double high, Steps steps, int most) {
  if (steps == Steps::linear) return evenly(low, high, most);
  return powers(low, high, steps == Steps::twos ? 2 : 10, most);
}

}  // namespace syncopate::tools::figure
