// Shapes: the ten classes, as distances from a point to an outline.
#include "dataset/shape.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace syncopate::tools::dataset {
namespace {

double length(double x, double y) { return std::sqrt(x * x + y * y); }

/// Nearest edge; inside or outside by counting the edges that a ray to the right crosses.
double to_polygon(Point p, std::span<const Point> corners) {
  double nearest = 1e9;
  bool inside = false;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const Point a = corners[i], b = corners[(i + 1) % corners.size()];
    const double ex = b.x - a.x, ey = b.y - a.y, px = p.x - a.x, py = p.y - a.y;
    const double along = std::clamp((px * ex + py * ey) / (ex * ex + ey * ey), 0.0, 1.0);
    nearest = std::min(nearest, length(px - along * ex, py - along * ey));
    if ((a.y > p.y) != (b.y > p.y) && px < ex * (py / ey)) inside = !inside;
  }
  return inside ? -nearest : nearest;
}

double to_disc(Point p, double radius) { return length(p.x, p.y) - radius; }

double to_ring(Point p) { return std::max(to_disc(p, 0.95), -to_disc(p, 0.52)); }

double to_box(Point p, double half_width, double half_height) {
  const double x = std::max(p.x, -p.x) - half_width, y = std::max(p.y, -p.y) - half_height;
  return length(std::max(x, 0.0), std::max(y, 0.0)) + std::min(std::max(x, y), 0.0);
}

double to_square(Point p) { return to_box(p, 0.7, 0.7); }

double to_frame(Point p) { return std::max(to_box(p, 0.7, 0.7), -to_box(p, 0.38, 0.38)); }

double to_triangle(Point p) {
  static constexpr Point kCorners[] = {{0, 1}, {-0.866, -0.5}, {0.866, -0.5}};
  return to_polygon(p, kCorners);
}

double to_cross(Point p) { return std::min(to_box(p, 0.95, 0.24), to_box(p, 0.24, 0.95)); }

/// Five points on the unit circle, the notches on a circle of 0.4.
double to_star(Point p) {
  static constexpr Point kCorners[] = {
      {0, 1},    {-0.2351, 0.3236}, {-0.9511, 0.3090}, {-0.3804, -0.1236}, {-0.5878, -0.8090},
      {0, -0.4}, {0.5878, -0.8090}, {0.3804, -0.1236}, {0.9511, 0.3090},   {0.2351, 0.3236}};
  return to_polygon(p, kCorners);
}

double to_crescent(Point p) { return std::max(to_disc(p, 0.95), -to_disc({p.x - 0.5, p.y}, 0.75)); }

double to_arrow(Point p) {
  static constexpr Point kCorners[] = {{1, 0},         {0.15, 0.75},  {0.15, 0.25}, {-0.95, 0.25},
                                       {-0.95, -0.25}, {0.15, -0.25}, {0.15, -0.75}};
  return to_polygon(p, kCorners);
}

double to_bars(Point p) {
  const double middle = to_box(p, 0.72, 0.15);
  return std::min({middle, to_box({p.x, p.y - 0.52}, 0.72, 0.15), to_box({p.x, p.y + 0.52}, 0.72, 0.15)});
}

}  // namespace

double distance_to(int label, Point point) {
  switch (label) {
    case 0:
      return to_disc(point, 0.85);
    case 1:
      return to_ring(point);
    case 2:
      return to_square(point);
    case 3:
      return to_frame(point);
    case 4:
      return to_triangle(point);
    case 5:
      return to_cross(point);
    case 6:
      return to_star(point);
    case 7:
      return to_crescent(point);
    case 8:
      return to_arrow(point);
    default:
      return to_bars(point);
  }
}

}  // namespace syncopate::tools::dataset
