// Quantiser: how a group of elements becomes a few bits an element, and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.hpp"

namespace syncopate::compress::quantised {

/// Groups are encoded each by itself, so that a tensor can be cut between any two of them.
class Quantiser {
 public:
  virtual ~Quantiser() = default;
  /// Elements of a group; the last group of a tensor may have fewer.
  [[nodiscard]] virtual std::size_t group() const noexcept = 0;
  /// Bytes of a group with so many elements; exact, whatever the elements are.
  [[nodiscard]] virtual std::size_t bytes(std::size_t elements) const noexcept = 0;
  /// `word`: random bits of this group. A group with an element that is not finite decodes to NaN.
  virtual void encode(std::span<const float> group, std::uint64_t word, std::byte* into) const = 0;
  /// Throws Corrupt for bytes that `encode` does not write.
  virtual void decode(const std::byte* from, std::span<float> group) const = 0;
};

/// Elements of a group, as a rule: the scale takes 1/16 bit an element, and group and scratch stay in the first cache.
inline constexpr std::size_t kGroup = 512;
/// No group is larger: for memory that holds one.
inline constexpr std::size_t kMostGroup = 2560;

/// Bytes of so many elements from the beginning of a group on.
[[nodiscard]] inline std::size_t bytes_of(const Quantiser& quantiser, std::size_t elements) noexcept {
  const std::size_t whole = elements / quantiser.group(), rest = elements % quantiser.group();
  return whole * quantiser.bytes(quantiser.group()) + (rest == 0 ? 0 : quantiser.bytes(rest));
}

}  // namespace syncopate::compress::quantised
