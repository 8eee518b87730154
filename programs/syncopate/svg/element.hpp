// Elements of SVG as text, for figures and reports alike: lines, words, bars, dots and curves.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace syncopate::tools::svg {

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Safe inside elements and double-quoted attributes; control characters become spaces.
[[nodiscard]] std::string escaped(std::string_view text);
/// A coordinate with at most two decimals.
[[nodiscard]] std::string px(double value);

/// `look` is a class of the style sheet around; `more` are further attributes, or empty.
[[nodiscard]] std::string line(std::string_view look, Point from, Point to, std::string_view more = {});
[[nodiscard]] std::string text(std::string_view look, Point at, std::string_view words, std::string_view more = {});
[[nodiscard]] std::string circle(std::string_view look, Point centre, double radius, std::string_view more = {});
[[nodiscard]] std::string polyline(std::string_view look, std::span<const Point> points, std::string_view more = {});
/// With a `title`, which is shown on hover, where it has one.
[[nodiscard]] std::string rect(std::string_view look, const Box& box, std::string_view more = {},
                               std::string_view title = {});

/// Attributes of text that does not begin at its place.
inline constexpr std::string_view kAtEnd = "text-anchor=\"end\"", kAtMiddle = "text-anchor=\"middle\"";

}  // namespace syncopate::tools::svg
