// Planes: records of CIFAR-10, a label and 32 x 32 pixels, plane by plane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "syncopate/pipeline.hpp"

namespace syncopate::input {

/// The normalised value of each byte, by channel.
using PlaneNormaliser = std::array<std::array<float, 256>, 3>;

/// Counts byte values by channel, from which it computes their exact moments.
class PlaneMoments final {
 public:
  void add(std::span<const std::byte> planes);  ///< three of equal size
  /// (x - mean) / deviation of each channel.
  [[nodiscard]] PlaneNormaliser normaliser() const;

 private:
  std::array<std::array<std::uint64_t, 256>, 3> histogram_{};
};

/// Random changes: a crop of 32 x 32 from the picture padded with four zero pixels on each side, and mirroring.
[[nodiscard]] std::unique_ptr<Decoder> plane_decoder(const PlaneNormaliser& normaliser);

}  // namespace syncopate::input
