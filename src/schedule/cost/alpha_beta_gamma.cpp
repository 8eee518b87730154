// Alpha-beta-gamma: an all-reduce as a + b M from one link's constants, for each algorithm of a published table.
// MG-WFBP, INFOCOM 2019, Table II; log is log2, and N a power of two except for the ring.
//
//   binary_tree         2 alpha log N     (2 beta + gamma) log N
//   recursive_doubling    alpha log N     (beta + gamma) log N
//   halving_doubling    2 alpha log N     2 beta - (2 beta + gamma)/N + gamma
//   ring                2 (N-1) alpha     2 (N-1)/N beta + (N-1)/N gamma
#include <cmath>

#include "base/require.hpp"
#include "schedule/cost.hpp"

namespace syncopate::schedule::cost {

namespace {

struct AlgorithmCost {
  std::string_view algorithm;
  double (*a)(double n, double alpha);
  double (*b)(double n, double beta, double gamma);
};

constexpr AlgorithmCost kTable[] = {
    {"binary_tree", [](double n, double alpha) { return 2 * alpha * std::log2(n); },
     [](double n, double beta, double gamma) { return (2 * beta + gamma) * std::log2(n); }},
    {"recursive_doubling", [](double n, double alpha) { return alpha * std::log2(n); },
     [](double n, double beta, double gamma) { return (beta + gamma) * std::log2(n); }},
    {"halving_doubling", [](double n, double alpha) { return 2 * alpha * std::log2(n); },
     [](double n, double beta, double gamma) { return 2 * beta - (2 * beta + gamma) / n + gamma; }},
    {"ring", [](double n, double alpha) { return 2 * (n - 1) * alpha; },
     [](double n, double beta, double gamma) { return 2 * (n - 1) / n * beta + (n - 1) / n * gamma; }},
};

Cost law(const CostInputs& inputs) {
  for (const AlgorithmCost& row : kTable) {
    if (row.algorithm != inputs.algorithm) continue;
    const double levels = std::log2(inputs.ranks);
    base::require(inputs.ranks >= 1 && (row.algorithm == "ring" || levels == std::floor(levels)),
                  "{} on {} ranks: this formula holds for 1, 2, 4, 8, ... ranks", row.algorithm, inputs.ranks);
    return Cost::affine(row.a(inputs.ranks, inputs.alpha_s),
                        row.b(inputs.ranks, inputs.beta_s_per_byte, inputs.gamma_s_per_byte));
  }
  throw Misuse(fmt::format("no formula for '{}'; allowed: binary_tree, recursive_doubling, halving_doubling, ring",
                           inputs.algorithm));
}

}  // namespace

extern constinit const CostModel alpha_beta_gamma{
    .name = "alpha_beta_gamma",
    .summary = "a + b M by formula, from ranks, algorithm and one link's alpha, beta and gamma",
    .source = "MG-WFBP Table II",
    .cost = law,
};

}  // namespace syncopate::schedule::cost
