// Index coding: the ascending indices of a selection in about as many bits as their entropy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::compress::sparse {

/// How indices are written. A packet takes whichever is shortest.
enum class IndexCoding : std::uint8_t {
  rice,      ///< gaps in Golomb-Rice code: random positions (about 0.03 bits an index above their entropy)
  bitmap,    ///< one bit per element: dense selections
  blocks16,  ///< per block of 65536 elements a count, then 16 bits per index: clustered positions
};
inline constexpr std::uint8_t kIndexCodings = 3;

struct IndexPlan {
  IndexCoding coding = IndexCoding::rice;
  std::uint8_t parameter = 0;  ///< rice: bits of a gap that are written as they are
  std::size_t bytes = 0;       ///< exact
};

/// The shortest coding of these indices, which ascend strictly and lie below `elements` (at most 2^32).
[[nodiscard]] IndexPlan shortest_coding(std::span<const std::uint32_t> indices, std::uint64_t elements);
/// Upper limit of shortest_coding().bytes for any selection of so many.
[[nodiscard]] std::size_t most_index_bytes(std::size_t selected, std::uint64_t elements);

/// Writes plan.bytes bytes.
void encode_indices(const IndexPlan& plan, std::span<const std::uint32_t> indices, std::uint64_t elements,
                    base::Bytes into);
struct IndexCount {
  std::size_t indices = 0;
  std::uint64_t elements = 0;  ///< of the tensor
};

/// Reads so many indices into `into`. Throws Corrupt unless they ascend strictly, lie below `elements`, and take the
/// bytes exactly: what it returns is safe to use whoever wrote the bytes.
void decode_indices(const IndexPlan& plan, const IndexCount& expected, base::ConstBytes from,
                    std::vector<std::uint32_t>& into);

}  // namespace syncopate::compress::sparse
