// Links: least absolute errors over the prices of plans, with costs that cannot be negative.
#include "fit/links.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "syncopate/error.hpp"

namespace syncopate::tools::fit {

namespace {

using Vector = std::array<double, 3>;  // alpha, beta, gamma

LinkCost link_of(const Vector& costs) {
  return {.alpha_s = costs[0], .beta_s_per_byte = costs[1], .gamma_s_per_byte = costs[2]};
}

double price(const PlanRequest& request, const Vector& costs) {
  return price_plans(request, link_of(costs)).predicted_s;
}

/// Coefficients of a price in each cost: price = alpha a + beta b + gamma c.
Vector shares_of(const PlanRequest& request) {
  return {price(request, {1, 0, 0}), price(request, {0, 1, 0}), price(request, {0, 0, 1})};
}

double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

bool is_linear(const PlanRequest& request, const Vector& shares) {
  const Vector usual{25e-6, 8e-9, 0.2e-9};
  const double asked = price(request, usual);
  return std::abs(dot(shares, usual) - asked) <= 0.01 * asked;
}

/// One observation: its prices' coefficients over its time, and its weight.
struct WeightedRow {
  Vector shares{};
  double weight = 1;
};

/// Minimises the weighted sum of (row . x - 1)^2 over the unknowns in `active`, by Gauss and Jordan on the normal
/// equations.
Vector solve(const std::vector<WeightedRow>& rows, unsigned active) {
  std::array<std::array<double, 4>, 3> system{};
  for (std::size_t i = 0; i < 3; ++i)
    for (const auto& [row, weight] : rows) {
      for (std::size_t j = 0; j < 3; ++j) system[i][j] += weight * row[i] * row[j];
      system[i][3] += weight * row[i];
    }
  Vector x{};
  for (std::size_t i = 0; i < 3; ++i) {
    if ((active >> i & 1) != 0) continue;
    system[i] = {};
    for (auto& equation : system) equation[i] = 0;
    system[i][i] = 1;
  }
  for (std::size_t pivot = 0; pivot < 3; ++pivot)
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == pivot || system[pivot][pivot] == 0) continue;
      const double factor = system[i][pivot] / system[pivot][pivot];
      for (std::size_t j = 0; j < 4; ++j) system[i][j] -= factor * system[pivot][j];
    }
  for (std::size_t i = 0; i < 3; ++i) x[i] = system[i][i] == 0 ? 0 : system[i][3] / system[i][i];
  return x;
}

double squares(const std::vector<WeightedRow>& rows, const Vector& x) {
  double sum = 0;
  for (const auto& [row, weight] : rows) sum += weight * (dot(row, x) - 1) * (dot(row, x) - 1);
  return sum;
}

Vector best_of(const std::vector<WeightedRow>& rows) {
  Vector best{};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned active = 1; active < 8; ++active) {
    const Vector x = solve(rows, active);
    const bool possible = x[0] >= 0 && x[1] >= 0 && x[2] >= 0;
    if (!possible || squares(rows, x) >= least) continue;
    best = x;
    least = squares(rows, x);
  }
  return best;
}

/// How far prices and times are apart, as factors: a sum of |log|.
double distance(const std::vector<WeightedRow>& rows, const Vector& costs) {
  double sum = 0;
  for (const WeightedRow& row : rows) sum += std::abs(std::log(std::max(dot(row.shares, costs), 1e-12)));
  return sum;
}

/// The nearest of a coarse net over all costs that networks have: absolute errors have more than one valley.
Vector start_of(const std::vector<WeightedRow>& rows) {
  Vector best{}, costs{};
  double least = std::numeric_limits<double>::infinity();
  for (costs[0] = 1e-8; costs[0] < 0.1; costs[0] *= 2)
    for (costs[1] = 1e-12; costs[1] < 1e-5; costs[1] *= 2)
      for (const double share : {0.0, 0.25, 1.0}) {
        costs[2] = share * costs[1];
        const double apart = distance(rows, costs);
        if (apart >= least) continue;
        least = apart;
        best = costs;
      }
  return best;
}

/// Errors as shares of the larger one of price and time, and squares weighted by one over the last error, which makes
/// absolute errors of them: a few times that some other load or a token bucket's burst made do not bend the rest.
Vector fitted(std::vector<WeightedRow> rows) {
  constexpr int kRounds = 30;
  constexpr double kSmall = 1e-3;  // errors below it count as squares
  Vector best = start_of(rows);
  for (int round = 0; round < kRounds; ++round) {
    for (WeightedRow& row : rows) {
      const double price = dot(row.shares, best), scale = 1 / std::max(1.0, price);  // the time is 1
      row.weight = scale * scale / std::max(kSmall, scale * std::abs(price - 1));
    }
    best = best_of(rows);
  }
  return best;
}

}  // namespace

LinkFit fit_links(const std::vector<Observation>& observations) {
  std::vector<WeightedRow> rows;
  for (const Observation& seen : observations) {
    Vector shares = shares_of(seen.request);
    if (!seen.counts || !is_linear(seen.request, shares)) continue;
    for (double& share : shares) share /= seen.seconds;  // so that an error of 10 % counts alike for all sizes
    rows.push_back({shares});
  }
  if (rows.empty()) throw Misuse("nothing to fit links to: no measured algorithm has a price linear in its costs");
  const Vector best = fitted(std::move(rows));
  LinkFit fit{link_of(best), {}};
  for (const Observation& seen : observations) fit.errors.push_back(price(seen.request, best) / seen.seconds - 1);
  return fit;
}

}  // namespace syncopate::tools::fit
