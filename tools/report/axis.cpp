// An axis: a range of values on a range of pixels, with round ticks.
#include "report/axis.hpp"

#include <algorithm>
#include <cmath>

#include "report/markup.hpp"

namespace syncopate::tools::report {
namespace {

/// Of 1, 2, 5 and 10 times a power of ten the one nearest to an even division.
double distance(double range, int wanted) {
  const double rough = range / wanted, power = std::pow(10, std::floor(std::log10(rough)));
  if (rough < 1.41 * power) return power;
  if (rough < 3.16 * power) return 2 * power;
  if (rough < 7.07 * power) return 5 * power;
  return 10 * power;
}

Axis ticked(double low, double high, double apart) {
  Axis result{low, high, 0, 1, {}, 0};
  const double slack = apart * 1e-6;
  for (double k = std::ceil((low - slack) / apart); k * apart <= high + slack; ++k) result.ticks.push_back(k * apart);
  result.digits = std::clamp(static_cast<int>(std::ceil(-std::log10(apart) - 1e-6)), 0, 9);
  return result;
}

}  // namespace

std::string Axis::label(double tick) const { return decimal(tick, digits); }

Axis axis(double low, double high, int wanted) {
  if (!(high - low > std::max(std::abs(low), std::abs(high)) * 1e-9)) high = low + std::max(1e-9, std::abs(low) * 0.1);
  return ticked(low, high, distance(high - low, wanted));
}

Axis round_axis(double low, double high, int wanted) {
  const Axis tight = axis(low, high, wanted);
  const double apart = distance(tight.high - tight.low, wanted);
  const double slack = 1e-6;
  return ticked(std::floor(tight.low / apart + slack) * apart, std::ceil(tight.high / apart - slack) * apart, apart);
}

}  // namespace syncopate::tools::report
