// An axis: choosing round ends and ticks.
#include "svg/axis.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate::tools::svg {
namespace {

/// The one of 1, 2, 5 and 10 times a power of ten that is nearest to an even division.
double distance(double range, int wanted) {
  const double rough = range / wanted, power = std::pow(10, std::floor(std::log10(rough)));
  if (rough < 1.41 * power) return power;
  if (rough < 3.16 * power) return 2 * power;
  if (rough < 7.07 * power) return 5 * power;
  return 10 * power;
}

Axis ticked(double low, double high, double apart) {
  Axis result{.low = low, .high = high, .ticks = {}};
  const double slack = apart * 1e-6;
  for (double k = std::ceil((low - slack) / apart); k * apart <= high + slack; ++k) result.ticks.push_back(k * apart);
  result.digits = std::clamp(static_cast<int>(std::ceil(-std::log10(apart) - 1e-6)), 0, 9);
  return result;
}

Axis powers(double low, double high, double base, int wanted) {
  const auto exponent = [base](double value) { return std::log(value) / std::log(base); };
  const auto first = static_cast<int>(std::floor(exponent(low) + 1e-9));
  const auto last = std::max(static_cast<int>(std::ceil(exponent(high) - 1e-9)), first + 1);
  const int stride = std::max(1, (last - first + wanted - 1) / wanted);
  Axis result{.low = std::pow(base, first), .high = std::pow(base, last), .ticks = {}, .logarithmic = true};
  for (int power = first; power <= last; power += stride) result.ticks.push_back(std::pow(base, power));
  return result;
}

}  // namespace

double Axis::operator()(double value) const {
  const double share = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + share * (to - from);
}

Axis axis(double low, double high, int wanted) {
  if (!(high - low > std::max(std::abs(low), std::abs(high)) * 1e-9)) high = low + std::max(1e-9, std::abs(low) * 0.1);
  return ticked(low, high, distance(high - low, wanted));
}

Axis round_axis(double low, double high, int wanted, Steps steps) {
  if (steps != Steps::linear) return powers(low, high, steps == Steps::twos ? 2 : 10, wanted);
  const Axis tight = axis(low, high, wanted);
  const double apart = distance(tight.high - tight.low, wanted);
  const double slack = 1e-6;
  return ticked(std::floor(tight.low / apart + slack) * apart, std::ceil(tight.high / apart - slack) * apart, apart);
}

}  // namespace syncopate::tools::svg
