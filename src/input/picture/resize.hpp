// Resizing: bilinear interpolation that averages when it shrinks.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "input/picture/cut.hpp"

namespace syncopate::input {

/// Maps a colour value to value * scale + offset.
struct Normaliser {
  std::array<float, 3> scale{1, 1, 1}, offset{};
};

/// The result to make from a cut.
struct Result {
  int side = 0;
  bool mirrored = false;
  Normaliser normaliser;
};

/// The source pixels of each result pixel along one axis, with weights whose sum is 1: a triangle as wide as one pixel
/// of the result or of the source, whichever is larger, within [begin, begin + length) of the source.
class Taps final {
 public:
  struct Extent {
    double begin = 0, length = 0;
    int limit = 0;  ///< pixels of the source
  };
  void fit(const Extent& extent, int side);
  [[nodiscard]] int first(int i) const { return first_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int count() const { return count_; }  ///< taps per pixel; unused ones weigh 0
  [[nodiscard]] const float* weights(int i) const {
    return &weights_[static_cast<std::size_t>(i) * static_cast<std::size_t>(count_)];
  }

 private:
  std::vector<int> first_;
  std::vector<float> weights_;
  int count_ = 0;
};

/// Scales a cut's pixels to planes. Keeps its working memory between calls.
class Resizer final {
 public:
  /// Writes f32 [3, side, side].
  void resize(const Cut& cut, const Result& result, float* out);
  /// f32 [3, from, from] to [3, side, side].
  void resize_planes(const float* in, int from, int side, float* out);

 private:
  Taps across_, down_;
  std::vector<float> row_;
};

}  // namespace syncopate::input
