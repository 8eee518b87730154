// Index coding: writes the ascending indices of a selection in about as many bits as their entropy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::compress::sparse {

/// How indices are written. A packet uses the shortest coding.
enum class IndexCoding : std::uint8_t {
  rice,      ///< gaps in Golomb-Rice code: random positions (about 0.03 bits an index above their entropy)
  bitmap,    ///< one bit per element: dense selections
  blocks16,  ///< per block of 65536 elements a count, then 16 bits per index: clustered positions
};
inline constexpr std::uint8_t kIndexCodings = 3;

struct IndexPlan {
  IndexCoding coding = IndexCoding::rice;
  std::uint8_t parameter = 0;  ///< rice: number of low bits of a gap that are written uncoded
  std::size_t bytes = 0;       ///< exact
};

/// The shortest coding of these indices, which ascend strictly and are below `elements` (at most 2^32).
[[nodiscard]] IndexPlan shortest_coding(std::span<const std::uint32_t> indices, std::uint64_t elements);
/// Upper bound of shortest_coding().bytes for any `selected` indices.
[[nodiscard]] std::size_t most_index_bytes(std::size_t selected, std::uint64_t elements);

/// Writes plan.bytes bytes.
void encode_indices(const IndexPlan& plan, std::span<const std::uint32_t> indices, std::uint64_t elements,
                    base::Bytes into);
struct IndexCount {
  std::size_t indices = 0;
  std::uint64_t elements = 0;  ///< of the tensor
};

/// Reads the expected number of indices into `into`. Throws Corrupt unless they ascend strictly, are below `elements`,
/// and use exactly the given bytes. The result is safe to use even if the bytes are malicious.
void decode_indices(const IndexPlan& plan, const IndexCount& expected, base::ConstBytes from,
                    std::vector<std::uint32_t>& into);

}  // namespace syncopate::compress::sparse
