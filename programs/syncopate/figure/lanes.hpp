// Lanes: when each policy computes and when it exchanges, one above the other on one axis of time, as SVG.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncopate::tools::figure {

struct Bar {
  std::string track, name;  ///< "forward", "backward", "exchange"
  double begin_s = 0, end_s = 0;
};

/// A lane of computing above a lane of exchanges.
struct Panel {
  std::string label;
  std::vector<Bar> bars;
};

/// Rows of `simulate --timeline` by the values of the keys `by`, in the order in which they appear; others are left
/// out.
[[nodiscard]] std::vector<Panel> panels_of(const std::vector<nlohmann::json>& rows, const std::vector<std::string>& by);
/// Throws Misuse where there is nothing to draw.
[[nodiscard]] std::string svg_of_lanes(const std::string& title, const std::vector<Panel>& panels);

}  // namespace syncopate::tools::figure
