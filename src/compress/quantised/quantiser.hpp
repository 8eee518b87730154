// Quantiser: encodes a group of elements with a few bits per element, and decodes it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.hpp"

namespace syncopate::compress::quantised {

/// Groups are encoded independently, so a tensor can be cut between any two groups.
class Quantiser {
 public:
  virtual ~Quantiser() = default;
  /// Elements of a group; the last group of a tensor may have fewer.
  [[nodiscard]] virtual std::size_t group() const noexcept = 0;
  /// Bytes of a group with `elements` elements; exact, independent of the values.
  [[nodiscard]] virtual std::size_t bytes(std::size_t elements) const noexcept = 0;
  /// `word`: random bits of this group. If an element is not finite, the whole group decodes to NaN.
  virtual void encode(std::span<const float> group, std::uint64_t word, std::byte* into) const = 0;
  /// Throws Corrupt for bytes that `encode` cannot produce.
  virtual void decode(const std::byte* from, std::span<float> group) const = 0;
};

/// Usual elements of a group: the scale costs 1/16 bit per element, and group and scratch fit the L1 cache.
inline constexpr std::size_t kGroup = 512;
/// Maximum elements of a group; buffers of one group have this size.
inline constexpr std::size_t kMostGroup = 2560;

/// Bytes of `elements` elements that begin at a group boundary.
[[nodiscard]] inline std::size_t bytes_of(const Quantiser& quantiser, std::size_t elements) noexcept {
  const std::size_t whole = elements / quantiser.group(), rest = elements % quantiser.group();
  return whole * quantiser.bytes(quantiser.group()) + (rest == 0 ? 0 : quantiser.bytes(rest));
}

}  // namespace syncopate::compress::quantised
