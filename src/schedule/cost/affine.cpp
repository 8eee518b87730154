// Affine: one line a + b M through measured points by least squares; refused where it would be wrong.
// MG-WFBP equation 9. All-reduces are not affine: algorithms switch by size, and start-up is measured at small sizes
// while training sends large ones. So the worst relative error over all points has a limit.
//
//   b = cov(M, T) / var(M),   a = mean T - b mean M
#include "base/require.hpp"
#include "schedule/cost.hpp"

namespace syncopate::schedule::cost {

namespace {

Cost line(const CostInputs& inputs) {
  const AffineFit fit = fit_affine(inputs.points);
  base::require(fit.worst_error <= inputs.allowed_error,
                "a line is {:.0f} % off at {:.0f} bytes (allowed: {:.0f} %, R2 {:.2f}); use the table of points itself",
                100 * fit.worst_error, fit.worst_bytes, 100 * inputs.allowed_error, fit.r_squared);
  base::require(fit.a_s >= 0 && fit.b_s_per_byte >= 0,
                "the line through the points has a = {} s, b = {} s per byte; neither may be negative: use the table",
                fit.a_s, fit.b_s_per_byte);
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
