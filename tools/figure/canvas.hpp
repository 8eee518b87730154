// Canvas: what every figure is drawn with: its frame, colours, lines and words, as SVG.
#pragma once

#include <array>
#include <string>

namespace syncopate::tools::figure {

/// Okabe and Ito's colours, which people with any colour vision tell apart.
inline constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333"};

struct Place {
  double x, y;
  std::string more = {};  ///< further attributes
};

/// Looks are classes of the style sheet: grid, tick, title, axis, name, end (right-aligned), middle.
[[nodiscard]] std::string line(const char* look, const Place& from, const Place& to);
[[nodiscard]] std::string text(const char* look, const Place& at, const std::string& words);
/// A whole figure around what is drawn in it.
[[nodiscard]] std::string sheet(const std::string& title, const Place& size, const std::string& drawn);

}  // namespace syncopate::tools::figure
