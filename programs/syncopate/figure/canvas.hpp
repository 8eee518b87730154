// Canvas: what every figure has in common: its frame, colours and style sheet.
#pragma once

#include <array>
#include <string>

namespace syncopate::tools::figure {

/// Okabe and Ito's colours, which are distinguishable with any colour vision.
inline constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333"};

/// A whole figure around what is drawn in it. Its style sheet has the classes grid, tick, title, axis, name, on, mark,
/// lead, curve, spread; end (right-aligned) and middle.
[[nodiscard]] std::string sheet(const std::string& title, double width, double height, const std::string& drawn);

}  // namespace syncopate::tools::figure
