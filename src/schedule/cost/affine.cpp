// Affine: a least-squares line a + b M through measured points; refused if it is too far off.
// MG-WFBP equation 9. All-reduces are not affine: algorithms change with size, and start-up is measured at small sizes
// while training sends large ones. So the worst relative error has a limit (10 % by default), and an error names the
// sizes that exceed it.
//
//   b = cov(M, T) / var(M),   a = mean T - b mean M
#include <algorithm>
#include <functional>

#include "base/require.hpp"
#include "schedule/cost.hpp"

namespace syncopate::schedule::cost {

namespace {

/// The points at which the line exceeds the limit, the worst first: "304 % off at 8192 bytes, 14 % at 12288 bytes".
std::string misses_of(const AffineFit& fit, const CostInputs& inputs) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::pair<double, double>> misses;  // error, bytes
  for (std::size_t i = 0; i < fit.errors.size(); ++i)
    if (fit.errors[i] > inputs.allowed_error) misses.emplace_back(fit.errors[i], inputs.points[i].bytes);
  std::ranges::sort(misses, std::greater());
  std::string text;
  for (std::size_t i = 0; i < std::min(misses.size(), kNamed); ++i)
    text += fmt::format("{}{:.0f} % {}at {:.0f} bytes", i == 0 ? "" : ", ", 100 * misses[i].first, i == 0 ? "off " : "",
                        misses[i].second);
  return misses.size() > kNamed ? fmt::format("{} and {} more sizes", text, misses.size() - kNamed) : text;
}

Cost line(const CostInputs& inputs) {
  const AffineFit fit = fit_affine(inputs.points);
  base::require(fit.worst_error <= inputs.allowed_error,
                "a line through these {} sizes is {} (allowed: {:.0f} %, R2 {:.2f}); use cost 'table', which holds at "
                "every measured size",
                inputs.points.size(), misses_of(fit, inputs), 100 * inputs.allowed_error, fit.r_squared);
  base::require(
      fit.a_s >= 0 && fit.b_s_per_byte >= 0,
      "the line through the points has a = {} s, b = {} s per byte; neither may be negative: use cost 'table'", fit.a_s,
      fit.b_s_per_byte);
  return Cost::affine(fit.a_s, fit.b_s_per_byte);
}

}  // namespace

extern constinit const CostModel affine{
    .name = "affine",
    .summary = "A line through measured points by least squares; refused where its error is too large",
    .source = "MG-WFBP equation 9",
    .cost = line,
};

}  // namespace syncopate::schedule::cost
