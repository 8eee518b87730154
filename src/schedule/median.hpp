// Median of measured times.
#pragma once

#include <algorithm>
#include <vector>

namespace syncopate::schedule {

/// Needs at least one value; for an even number of values, the mean of the two in the middle.
[[nodiscard]] inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace syncopate::schedule
