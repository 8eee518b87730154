// Shapes: the ten classes, as distances from a point to an outline.
#pragma once

#include <array>
#include <string_view>

namespace syncopate::tools::dataset {

struct Point {
  double x = 0;
  double y = 0;
};

inline constexpr std::array<std::string_view, 10> kClasses = {"disc",  "ring", "square",   "frame", "triangle",
                                                              "cross", "star", "crescent", "arrow", "bars"};

/// Distance from `point` to the outline of the class's shape, negative inside. The shape stands upright around the
/// origin inside the unit circle. Only + - * / and sqrt: the same bits on every machine.
[[nodiscard]] double distance_to(int label, Point point);

}  // namespace syncopate::tools::dataset
