// Links: the startup, byte and reduction costs that explain measured collectives best.
#pragma once

#include <string>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::tools::fit {

/// One collective that was timed; the request names an algorithm, not "auto".
struct Observation {
  PlanRequest request;
  double seconds = 0;
  bool counts = true;  ///< else it is judged, not fitted
};

struct LinkFit {
  LinkCost link;
  std::vector<double> errors;  ///< by observation: predicted / measured - 1
};

/// Least sum of the relative errors over alpha, beta, gamma >= 0. The plans' prices are linear in the three, except
/// those whose block count depends on them; these are judged, not fitted. A gamma of 0 means that the wire hides
/// reducing. Throws Misuse without observations to fit.
[[nodiscard]] LinkFit fit_links(const std::vector<Observation>& observations);

}  // namespace syncopate::tools::fit
