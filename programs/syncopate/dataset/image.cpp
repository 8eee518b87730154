// Images: one drawn picture of a shape, as CIFAR-10 stores one.
//
// Why a linear classifier cannot do it: a pixel's expected value is nearly the same for all classes, since the shape's
// place and rotation are random and it is as often brighter as darker than what is behind it.
#include "dataset/image.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "dataset/shape.hpp"

namespace syncopate::tools::dataset {
namespace {

using Colour = std::array<double, 3>;  // each 0..1

/// Shapes are placed on kSide x kSide units, of which a pixel is 1 or less.
struct Canvas {
  int side = kSide;
  std::vector<Colour> pixels = std::vector<Colour>(static_cast<std::size_t>(side) * static_cast<std::size_t>(side));

  [[nodiscard]] double unit() const { return static_cast<double>(kSide) / side; }
  [[nodiscard]] Point centre(int x, int y) const { return {(x + 0.5) * unit(), (y + 0.5) * unit()}; }
  [[nodiscard]] Colour& at(int x, int y) {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(side) + static_cast<std::size_t>(x)];
  }
};

Colour random_colour(Random& random) { return {random.unit(), random.unit(), random.unit()}; }

Colour mix(const Colour& a, const Colour& b, double share) {
  return {a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share};
}

double difference(const Colour& a, const Colour& b) {
  const double r = a[0] - b[0], g = a[1] - b[1], blue = a[2] - b[2];
  return std::sqrt(r * r + g * g + blue * blue);
}

/// A direction, uniform on the circle, without trigonometry: a point of the disc, moved to its edge.
Point random_direction(Random& random) {
  while (true) {
    const Point p{random.between(-1, 1), random.between(-1, 1)};
    const double square = p.x * p.x + p.y * p.y;
    if (square > 1 || square < 0.01) continue;
    const double length = std::sqrt(square);
    return {p.x / length, p.y / length};
  }
}

/// How much of a pixel lies inside an outline at this distance (in pixels) from its centre.
double coverage(double distance) { return std::clamp(0.5 - distance, 0.0, 1.0); }

template <class Distance>
void paint(Canvas& canvas, const Colour& colour, double opacity, Distance&& distance) {
  for (int y = 0; y < canvas.side; ++y)
    for (int x = 0; x < canvas.side; ++x) {
      Colour& pixel = canvas.at(x, y);
      pixel = mix(pixel, colour, opacity * coverage(distance(canvas.centre(x, y)) / canvas.unit()));
    }
}

void paint_background(Canvas& canvas, const std::array<Colour, 2>& ends, Random& random) {
  const Point way = random_direction(random);
  for (int y = 0; y < canvas.side; ++y)
    for (int x = 0; x < canvas.side; ++x) {
      const Point p = canvas.centre(x, y);
      const double along = ((p.x - 16) * way.x + (p.y - 16) * way.y) / 44.0 + 0.5;
      canvas.at(x, y) = mix(ends[0], ends[1], std::clamp(along, 0.0, 1.0));
    }
}

/// Parameters that the difficulty sets. At 0 they are those of the plain set, whose bytes a test compares.
struct Hardness {
  explicit Hardness(double difficulty)
      : least_contrast(0.45 - 0.35 * difficulty),
        least_radius(8 - 3 * difficulty),
        most_radius(13 - 5 * difficulty),
        least_opacity(0.85 - 0.45 * difficulty),
        most_opacity(1 - 0.25 * difficulty),
        most_grain(0.05 + 0.20 * difficulty),
        lines(4 + static_cast<int>(6 * difficulty)),
        specks(5 + static_cast<int>(8 * difficulty)) {}
  double least_contrast, least_radius, most_radius, least_opacity, most_opacity, most_grain;
  int lines, specks;  ///< exclusive upper bounds of their numbers
};

/// Thin lines and soft specks: none of them looks like a shape of ours.
void paint_clutter(Canvas& canvas, const Hardness& hard, Random& random) {
  for (int left = random.below(hard.lines); left > 0; --left) {
    const Point at{random.between(0, kSide), random.between(0, kSide)}, way = random_direction(random);
    const double half = random.between(2, 12), width = random.between(0.3, 0.8), opacity = random.between(0.3, 0.8);
    paint(canvas, random_colour(random), opacity, [&](Point p) {
      const double along = std::clamp((p.x - at.x) * way.x + (p.y - at.y) * way.y, -half, half);
      const double dx = p.x - at.x - along * way.x, dy = p.y - at.y - along * way.y;
      return std::sqrt(dx * dx + dy * dy) - width;
    });
  }
  for (int left = random.below(hard.specks); left > 0; --left) {
    const Point at{random.between(0, kSide), random.between(0, kSide)};
    const double radius = random.between(0.8, 2.2), opacity = random.between(0.2, 0.7);
    paint(canvas, random_colour(random), opacity, [&](Point p) {
      const double dx = p.x - at.x, dy = p.y - at.y;
      return (std::sqrt(dx * dx + dy * dy) - radius) * 0.6;
    });
  }
}

struct Subject {
  int label = 0;
  Colour colour{};
};

void paint_shape(Canvas& canvas, const Subject& subject, const Hardness& hard, Random& random) {
  const double radius = random.between(hard.least_radius, hard.most_radius);
  const double room = kSide / 2.0 - 0.9 * radius;
  const Point centre{kSide / 2.0 + random.between(-room, room), kSide / 2.0 + random.between(-room, room)};
  const Point turn = random_direction(random);
  paint(canvas, subject.colour, random.between(hard.least_opacity, hard.most_opacity), [&](Point p) {
    const double dx = (p.x - centre.x) / radius, dy = (p.y - centre.y) / radius;
    return radius * distance_to(subject.label, {dx * turn.x + dy * turn.y, dy * turn.x - dx * turn.y});
  });
}

Picture developed(const Canvas& canvas, const Hardness& hard, Random& random) {
  Picture picture{canvas.side, {}};
  const double grain = random.between(0.0, hard.most_grain);
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (const Colour& colour : canvas.pixels) {
      const double value = colour[channel] + grain * random.bell();
      picture.planes.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 1.0) * 255.0 + 0.5));
    }
  return picture;
}

}  // namespace

Picture draw_picture(int label, int side, Random random, double difficulty) {
  const Hardness hard(difficulty);
  const std::array<Colour, 2> ground = {random_colour(random), random_colour(random)};
  Colour colour = random_colour(random);
  const auto stands_out = [&] {
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0})
      if (difference(colour, mix(ground[0], ground[1], share)) < hard.least_contrast) return false;
    return true;
  };
  while (!stands_out()) colour = random_colour(random);
  Canvas canvas{.side = side};
  paint_background(canvas, ground, random);
  paint_clutter(canvas, hard, random);
  paint_shape(canvas, {label, colour}, hard, random);
  return developed(canvas, hard, random);
}

Record draw_image(int label, Random random, double difficulty) {
  const Picture picture = draw_picture(label, kSide, random, difficulty);
  Record record{static_cast<std::uint8_t>(label)};
  std::ranges::copy(picture.planes, record.begin() + 1);
  return record;
}

}  // namespace syncopate::tools::dataset
