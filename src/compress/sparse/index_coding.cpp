// Index coding: Golomb-Rice gaps, bitmaps and 16-bit blocks, with their exact sizes and checked decoders.
#include "compress/sparse/index_coding.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "compress/sparse/bits.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {

namespace {

constexpr unsigned kBlockBits = 16;
constexpr unsigned kMostParameter = 31;

[[noreturn]] void refuse(const char* what) { throw Corrupt(std::string("indices of a sparse packet: ") + what); }

std::uint64_t blocks_of(std::uint64_t elements) { return (elements + (1U << kBlockBits) - 1) >> kBlockBits; }

/// Bits of a block's count, which is at most 65536.
constexpr unsigned kCountBits = kBlockBits + 1;

std::size_t block_bytes(std::size_t count, std::uint64_t elements) {
  return bytes_of_bits(blocks_of(elements) * kCountBits + std::uint64_t{count} * kBlockBits);
}

/// Codes each gap between neighbours, minus one, with parameter b: (gap >> b) ones, a zero, and the low b bits.
struct RiceCandidates {
  unsigned first;
  std::array<std::uint64_t, 3> bits;  ///< total bits with parameter first, first + 1 and first + 2
};

RiceCandidates rice_bits(std::span<const std::uint32_t> indices, std::uint64_t elements) {
  // For geometric gaps with mean m, the best parameter is about log2(m ln 2).
  const double mean = static_cast<double>(elements) / static_cast<double>(indices.size());
  const auto scaled = static_cast<std::uint64_t>(std::max(1.0, mean * 0.693));
  const auto middle = static_cast<unsigned>(std::bit_width(scaled) - 1);
  RiceCandidates found{.first = std::min(middle == 0 ? 0 : middle - 1, kMostParameter - 2), .bits = {}};
  std::uint64_t next = 0;
  for (const std::uint32_t index : indices) {
    const std::uint64_t gap = index - next;
    next = std::uint64_t{index} + 1;
    for (unsigned i = 0; i < 3; ++i) found.bits[i] += gap >> (found.first + i);
  }
  for (unsigned i = 0; i < 3; ++i) found.bits[i] += indices.size() * std::uint64_t{found.first + i + 1};
  return found;
}

void encode_rice(unsigned parameter, std::span<const std::uint32_t> indices, BitWriter& into) {
  std::uint64_t next = 0;
  for (const std::uint32_t index : indices) {
    const std::uint64_t gap = index - next;
    next = std::uint64_t{index} + 1;
    into.ones(gap >> parameter);
    into.bits(0, 1);
    into.bits(gap & ((std::uint64_t{1} << parameter) - 1), parameter);
  }
}

void decode_rice(unsigned parameter, std::uint64_t elements, BitReader& from, std::span<std::uint32_t> into) {
  std::uint64_t next = 0;
  for (std::uint32_t& found : into) {
    const std::uint64_t ones = from.ones();
    if (ones > (elements >> parameter)) refuse("a gap is wider than the tensor");
    const std::uint64_t index = next + (ones << parameter | from.bits(parameter));
    if (index >= elements) refuse("an index lies beyond the tensor");
    found = static_cast<std::uint32_t>(index);
    next = index + 1;
  }
}

void encode_bitmap(std::span<const std::uint32_t> indices, base::Bytes into) {
  std::ranges::fill(into, std::byte{0});
  for (const std::uint32_t index : indices) into[index / 8] |= std::byte(1U << (index % 8));
}

void decode_bitmap(std::uint64_t elements, base::ConstBytes from, std::span<std::uint32_t> into) {
  std::size_t found = 0;
  for (std::size_t byte = 0; byte < from.size(); ++byte) {
    for (auto bits = std::to_integer<unsigned>(from[byte]); bits != 0; bits &= bits - 1) {
      const std::uint64_t index = byte * 8 + static_cast<unsigned>(std::countr_zero(bits));
      if (index >= elements || found == into.size())
        refuse("a bitmap has an index beyond the tensor or more bits than its count");
      into[found++] = static_cast<std::uint32_t>(index);
    }
  }
  if (found != into.size()) refuse("a bitmap has fewer bits than its count");
}

void encode_blocks(std::span<const std::uint32_t> indices, std::uint64_t elements, BitWriter& into) {
  auto next = indices.begin();
  for (std::uint64_t block = 0; block < blocks_of(elements); ++block) {
    const auto end =
        std::find_if(next, indices.end(), [&](std::uint32_t index) { return index >> kBlockBits != block; });
    into.bits(static_cast<std::uint64_t>(end - next), kCountBits);
    for (; next != end; ++next) into.bits(*next & ((1U << kBlockBits) - 1), kBlockBits);
  }
}

void decode_blocks(std::uint64_t elements, BitReader& from, std::span<std::uint32_t> into) {
  std::size_t found = 0;
  for (std::uint64_t block = 0; block < blocks_of(elements); ++block) {
    const std::uint64_t in_block = from.bits(kCountBits);
    if (in_block > into.size() - found) refuse("blocks hold more indices than the packet");
    for (std::uint64_t i = 0; i < in_block; ++i) {
      const std::uint64_t index = block << kBlockBits | from.bits(kBlockBits);
      if (index >= elements) refuse("an index lies beyond the tensor");
      if (found > 0 && index <= into[found - 1]) refuse("indices do not ascend");
      into[found++] = static_cast<std::uint32_t>(index);
    }
  }
  if (found != into.size()) refuse("blocks hold fewer indices than the packet");
}

}  // namespace

IndexPlan shortest_coding(std::span<const std::uint32_t> indices, std::uint64_t elements) {
  if (indices.empty() || indices.size() == elements) return {};  // the count alone determines the indices
  IndexPlan best{IndexCoding::bitmap, 0, bytes_of_bits(elements)};
  const auto offer = [&](const IndexPlan& plan) {
    if (plan.bytes < best.bytes) best = plan;
  };
  const RiceCandidates rice = rice_bits(indices, elements);
  for (unsigned i = 0; i < rice.bits.size(); ++i)
    offer({IndexCoding::rice, static_cast<std::uint8_t>(rice.first + i), bytes_of_bits(rice.bits[i])});
  offer({IndexCoding::blocks16, 0, block_bytes(indices.size(), elements)});
  return best;
}

std::size_t most_index_bytes(std::size_t selected, std::uint64_t elements) {
  return std::min(bytes_of_bits(elements), block_bytes(selected, elements));
}

void encode_indices(const IndexPlan& plan, std::span<const std::uint32_t> indices, std::uint64_t elements,
                    base::Bytes into) {
  if (plan.bytes == 0) return;
  if (plan.coding == IndexCoding::bitmap) return encode_bitmap(indices, into.first(plan.bytes));
  BitWriter writer(into.first(plan.bytes));
  if (plan.coding == IndexCoding::rice)
    encode_rice(plan.parameter, indices, writer);
  else
    encode_blocks(indices, elements, writer);
  writer.finish();
}

void decode_indices(const IndexPlan& plan, const IndexCount& expected, base::ConstBytes from,
                    std::vector<std::uint32_t>& into) {
  const auto [count, elements] = expected;
  if (count > elements) refuse("their count exceeds the tensor's elements");
  if (count > 0 && count < elements && plan.bytes == 0) refuse("there are none");
  // An index takes at least one bit, so the received bytes bound the memory.
  if (plan.bytes > 0 && count > std::uint64_t{plan.bytes} * 8) refuse("there are fewer than their count");
  into.resize(count);
  if (plan.bytes == 0) {
    for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<std::uint32_t>(i);
    return;
  }
  if (plan.coding == IndexCoding::bitmap) {
    if (plan.bytes != bytes_of_bits(elements)) refuse("a bitmap has the wrong length");
    return decode_bitmap(elements, from, into);
  }
  BitReader reader(from);
  if (plan.coding == IndexCoding::rice) {
    if (plan.parameter > kMostParameter) refuse("an unknown parameter");
    decode_rice(plan.parameter, elements, reader, into);
  } else {
    decode_blocks(elements, reader, into);
  }
  if (!reader.at_end()) refuse("bytes follow their end");
}

}  // namespace syncopate::compress::sparse
