// Packet: encodes one tensor's selection as bytes, and decodes it.
#pragma once

#include "base/bytes.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

/// How a packet encodes values: 32 bits (f32), or 1 to 8 bits: a sign and a level of a scale in the packet. With b
/// bits, the levels are 0 to 2^(b-1) - 1 and the highest level is the largest magnitude. With 1 bit, every value is
/// plus or minus the mean magnitude, or plus or minus `scale` if it is set.
struct ValueCoding {
  unsigned bits = 32;
  float scale = 0;
};

/// The content of a received packet.
struct Arrival {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

/// Upper bound of the bytes of write_indices for `selected` indices.
[[nodiscard]] std::size_t most_indices_bytes(std::size_t selected, std::uint64_t elements);

/// Writes indices that ascend strictly and are below `elements`. Returns the number of bytes written.
///
///   1 byte index coding | 1 byte its parameter | LEB128 selected | LEB128 index bytes | indices
std::size_t write_indices(std::span<const std::uint32_t> indices, std::uint64_t elements, base::Bytes into);

/// Reads indices and returns the bytes after them. Throws Corrupt for bytes that write_indices cannot produce, so the
/// indices are safe to use.
[[nodiscard]] base::ConstBytes read_indices(std::uint64_t elements, base::ConstBytes from,
                                            std::vector<std::uint32_t>& into);

/// Upper bound of the bytes of a packet with `selected` of `elements` elements.
[[nodiscard]] std::size_t most_packet_bytes(const ValueCoding& coding, std::size_t selected, std::uint64_t elements);

/// Expected bytes of random indices (about their entropy), and of a packet with such indices.
[[nodiscard]] double expected_indices_bytes(std::size_t selected, std::uint64_t elements);
[[nodiscard]] double expected_packet_bytes(const ValueCoding& coding, std::size_t selected, std::uint64_t elements);

/// Writes the indices and values of a selection from a tensor with `elements` elements, and replaces the selection's
/// values by the decoded values.
///
///   write_indices | values: 4 bytes (f32) each;
///                   with 1 to 8 bits: 4 bytes unit (f32) | per value 1 bit sign, the other bits its level | zero bits
///
/// Returns the number of bytes written. If a value is not finite, all quantised values are NaN, so that every rank
/// detects it.
std::size_t write_packet(const ValueCoding& coding, Selection& selection, std::uint64_t elements, base::Bytes into);

/// Bytes of a packet from write_packet that are not values.
[[nodiscard]] std::size_t index_bytes_of(base::ConstBytes packet);

/// Reads a packet and returns the bytes after it. Throws Corrupt for bytes that write_packet cannot produce, so the
/// indices are safe to use. The memory for indices and values does not exceed the tensor's elements.
[[nodiscard]] base::ConstBytes read_packet(const ValueCoding& coding, std::uint64_t elements, base::ConstBytes from,
                                           Arrival& into);

}  // namespace syncopate::compress::sparse
