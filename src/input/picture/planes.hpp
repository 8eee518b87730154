// Planes: records of CIFAR-10, a label and 32 x 32 pixels, plane by plane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "syncopate/pipeline.hpp"

namespace syncopate::input {

/// What each channel's byte becomes.
using PlaneNormaliser = std::array<std::array<float, 256>, 3>;

/// Counts bytes by channel, and so knows their moments exactly.
class PlaneMoments final {
 public:
  void add(std::span<const std::byte> planes);  ///< three of equal size
  /// (x - mean) / deviation of each channel.
  [[nodiscard]] PlaneNormaliser normaliser() const;

 private:
  std::array<std::array<std::uint64_t, 256>, 3> histogram_{};
};

/// Random changes: a crop of 32 x 32 from the picture with four pixels of zero around it, and mirror images.
[[nodiscard]] std::unique_ptr<Decoder> plane_decoder(const PlaneNormaliser& normaliser);

}  // namespace syncopate::input
