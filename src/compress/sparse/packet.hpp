// Packet: one tensor's selection as bytes, and back.
#pragma once

#include "base/bytes.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

/// How the values of a packet travel: 32 bits (f32), 16 (f16), or 1 to 8: a sign and a level of a scale that the packet
/// carries. With b bits the levels are 0 to 2^(b-1) - 1 and the scale makes the highest one the largest magnitude; with
/// 1 bit every value is plus or minus the mean magnitude, or `scale` if it is set.
struct ValueCoding {
  unsigned bits = 32;
  float scale = 0;
};

/// What came in a packet.
struct Arrival {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

/// Upper limit of what write_indices takes for so many indices.
[[nodiscard]] std::size_t most_indices_bytes(std::size_t selected, std::uint64_t elements);

/// Writes indices that ascend strictly and lie below `elements`. Returns the bytes that they took.
///
///   1 byte index coding | 1 byte its parameter | LEB128 selected | LEB128 index bytes | indices
std::size_t write_indices(std::span<const std::uint32_t> indices, std::uint64_t elements, base::Bytes into);

/// Reads them; returns the bytes behind them. Throws Corrupt for bytes that write_indices does not write: the indices
/// are safe to use.
[[nodiscard]] base::ConstBytes read_indices(std::uint64_t elements, base::ConstBytes from,
                                            std::vector<std::uint32_t>& into);

/// Upper limit of the bytes of a packet with `selected` of `elements` elements.
[[nodiscard]] std::size_t most_packet_bytes(const ValueCoding& coding, std::size_t selected, std::uint64_t elements);

/// Bytes of indices that are chosen at random, of about their entropy; and of a packet with such indices.
[[nodiscard]] double expected_indices_bytes(std::size_t selected, std::uint64_t elements);
[[nodiscard]] double expected_packet_bytes(const ValueCoding& coding, std::size_t selected, std::uint64_t elements);

/// Writes the indices and then the values of a selection from a tensor with so many elements, and replaces its values
/// by what a reader gets. Returns the bytes that it took. A value that is not finite makes all quantised values NaN, so
/// that no rank overlooks it.
std::size_t write_packet(const ValueCoding& coding, Selection& selection, std::uint64_t elements, base::Bytes into);

/// Bytes of a packet that write_packet wrote beside its values.
[[nodiscard]] std::size_t index_bytes_of(base::ConstBytes packet);

/// Reads a packet; returns the bytes behind it. Throws Corrupt for bytes that write_packet does not write: indices are
/// safe to use. Neither room grows beyond the tensor's elements.
[[nodiscard]] base::ConstBytes read_packet(const ValueCoding& coding, std::uint64_t elements, base::ConstBytes from,
                                           Arrival& into);

}  // namespace syncopate::compress::sparse
