// CostModel: an entry of the shelf cost/: it makes the cost of an exchange from measured or known numbers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/policy.hpp"

namespace syncopate::schedule {

/// A measured exchange.
struct Point {
  double bytes = 0, seconds = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

/// A line fitted through points, and its errors.
struct AffineFit {
  double a_s = 0, b_s_per_byte = 0;
  double r_squared = 0;
  std::vector<double> errors;  ///< by point: |fit - measured| / measured
  double worst_error = 0;
  double worst_bytes = 0;  ///< the size with the worst error
};
/// Ordinary least squares; needs at least two sizes (Misuse).
[[nodiscard]] AffineFit fit_affine(std::span<const Point> points);

/// Inputs of all entries of the shelf; each entry's summary names those that it reads.
struct CostInputs {
  double ranks = 1;
  double alpha_s = 0, beta_s_per_byte = 0,
         gamma_s_per_byte = 0;              ///< one link: start-up, per byte sent, per byte reduced
  std::string algorithm = "ring";           ///< a row of the paper's Table II
  std::vector<Point> points;                ///< measured or simulated; sizes ascend (`observed`: in any order)
  double allowed_error = 0.1;               ///< of a fit, at its worst point
  std::function<double(double bytes)> law;  ///< any law, e.g. that of a collective algorithm
  double largest_bytes = 1 << 30;           ///< size up to which a law is approximated
};

struct CostModel {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  Cost (*cost)(const CostInputs& inputs);
};

/// Every model, by name (generated from the folder cost/).
[[nodiscard]] std::span<const CostModel* const> cost_models();
[[nodiscard]] const CostModel& cost_model_named(std::string_view name);  ///< throws Misuse that lists them

}  // namespace syncopate::schedule
