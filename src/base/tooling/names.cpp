// Unknown names: finds the nearest allowed name by edit distance.
#include "syncopate/tooling/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace syncopate {

namespace {

/// Number of letters to insert, remove, replace or swap with their neighbour (optimal string alignment distance).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), current(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, current);
  }
  return last.back();
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> allowed) {
  constexpr std::size_t kLettersPerMistake = 3;
  if (name.size() < 2) return {};
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, name.size() / kLettersPerMistake) + 1;
  for (const std::string_view candidate : allowed) {
    const std::size_t apart = candidate.starts_with(name) ? 1 : distance(name, candidate);
    if (apart >= least) continue;
    nearest = candidate;
    least = apart;
  }
  return nearest;
}

std::string unknown_name(std::string_view what, std::string_view name, std::span<const std::string_view> allowed) {
  constexpr std::size_t kMostListed = 40;
  const std::string_view meant = nearest_name(name, allowed);
  if (!meant.empty() && allowed.size() > kMostListed)
    return fmt::format("{} '{}' is unknown; did you mean '{}'?", what, name, meant);
  return fmt::format("{} '{}' is unknown; allowed: {}{}", what, name, fmt::join(allowed, ", "),
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

}  // namespace syncopate
