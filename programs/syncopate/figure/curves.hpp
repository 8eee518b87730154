// Curves: rows of measurements become the lines of a figure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "figure/plot.hpp"

namespace syncopate::tools::figure {

/// Which quantities of a row are drawn; keys as in `--json` rows.
struct Choice {
  std::string x = "bytes";
  std::string y = "seconds";
  std::vector<std::string> by = {"contender", "algorithm"};  ///< one curve per combination of their values
};

/// Rows that lack x or y (or have null there) are left out. A y of the form {"median", "min", "max"} is drawn at its
/// median with its spread. Rows of the same curve and x: the last one counts, so that a file can be appended to.
[[nodiscard]] std::vector<Curve> curves_of(const std::vector<nlohmann::json>& rows, const Choice& choice);

}  // namespace syncopate::tools::figure
