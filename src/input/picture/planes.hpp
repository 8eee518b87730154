// Planes: records of square pictures whose pixels are stored plane by plane, as in CIFAR-10 and MNIST.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "syncopate/pipeline.hpp"

namespace syncopate::input {

/// A record: `head` bytes that are not pixels, then planes of side x side bytes.
struct PlaneLayout {
  int side = 0;
  std::size_t planes = 3;  ///< red, green, blue; or 1: grey, the value of all three
  std::size_t head = 0;

  [[nodiscard]] std::size_t plane_bytes() const noexcept {
    return static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return head + planes * plane_bytes(); }
};

/// The normalised value of each byte, by channel.
using PlaneNormaliser = std::array<std::array<float, 256>, 3>;

/// Counts byte values by channel, from which it computes their exact moments.
class PlaneMoments final {
 public:
  explicit PlaneMoments(const PlaneLayout& layout) : layout_(layout) {}
  void add(std::span<const std::byte> record);
  /// (x - mean) / deviation of each channel.
  [[nodiscard]] PlaneNormaliser normaliser() const;

 private:
  const PlaneLayout layout_;
  std::array<std::array<std::uint64_t, 256>, 3> histogram_{};  ///< of each plane
};

/// Random changes: a crop of the picture's size from the picture padded with four zero pixels on each side, and
/// mirroring.
[[nodiscard]] std::unique_ptr<Decoder> plane_decoder(const PlaneLayout& layout, const PlaneNormaliser& normaliser);

}  // namespace syncopate::input
