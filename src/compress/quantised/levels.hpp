// Quantisers: encode a group of elements with a few bits per element; the groups of a tensor that each rank sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.hpp"
#include "syncopate/codec.hpp"

namespace syncopate::compress::quantised {

/// The elements of a tensor that a rank sums: an even part of its groups. The tensor's key rotates the parts among the
/// ranks, so that the larger parts of many tensors do not all belong to one rank. Parts depend on nothing else, so
/// results and state do not depend on which tensors share a bucket.
[[nodiscard]] inline Range part_of(const Tensor& tensor, std::size_t group, const StepInfo& info) noexcept {
  const auto ranks = static_cast<std::size_t>(info.ranks), rank = static_cast<std::size_t>(info.rank);
  const std::size_t count = tensor.values.count;
  const Range groups = even_part((count + group - 1) / group, ranks, (rank + tensor.key % ranks) % ranks);
  return {std::min(groups.begin * group, count), std::min(groups.end * group, count)};
}

/// The largest number of elements of a part.
[[nodiscard]] inline std::size_t most_of(const Tensor& tensor, std::size_t group, int ranks) noexcept {
  const std::size_t groups = (tensor.values.count + group - 1) / group;
  return std::min(even_part(groups, static_cast<std::size_t>(ranks), 0).size() * group, tensor.values.count);
}

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

struct LevelCoding {
  std::size_t group = kGroup;
  std::uint8_t highest = 1;   ///< levels are integers in [-highest, highest]; at most 127
  unsigned bits = 0;          ///< per level, enough for 2 * highest; 0: five levels in a byte (highest is 1)
  bool is_stochastic = true;  ///< stochastic rounding (unbiased); otherwise to nearest
  /// The value of one level. It is not finite if and only if an element is not finite.
  double (*unit)(std::span<const float> group, unsigned highest) = nullptr;
};

/// A group is encoded as its unit (f32) and its packed levels (kernel/pack.hpp). If the unit is below 2^-100, the group
/// is encoded as zeros; with feedback, its residual grows until the unit is large enough. The unit is at most
/// kernel::largest_unit, so every level is finite.
[[nodiscard]] std::unique_ptr<Quantiser> level_quantiser(const LevelCoding& coding);

}  // namespace syncopate::compress::quantised
