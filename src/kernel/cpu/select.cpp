// Selecting and counting by magnitude on the processor's widest vectors: hits are found without a branch.
#include "kernel/select.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/select.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

constexpr std::size_t kWord = 64;   ///< elements whose hits fill one word of bits
constexpr std::size_t kWords = 64;  ///< examined before any hit is written

using Lanes = hn::CappedTag<float, 16>;
using LanesI32 = hn::RebindToSigned<Lanes>;

HWY_INLINE hn::Vec<LanesI32> magnitudes_at(const float* in) {
  const LanesI32 d;
  return hn::And(hn::BitCast(d, hn::LoadU(Lanes(), in)), hn::Set(d, 0x7fff'ffff));
}

/// Bit i: whether the magnitude of in[i] is above `below`.
HWY_INLINE std::uint64_t hits(const float* in, hn::Vec<LanesI32> below) {
  const LanesI32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < kWord; i += lanes) {
    std::uint8_t bits[8] = {};
    static_cast<void>(hn::StoreMaskBits(d, hn::Gt(magnitudes_at(in + i), below), bits));
    std::uint64_t part;
    std::memcpy(&part, bits, sizeof part);
    word |= part << i;
  }
  return word;
}

/// Whether an element is a hit cannot be predicted, so that a branch per vector costs more than reading it: hits are
/// collected as words of bits, then the words that are not zero are listed, and only these have a loop.
std::size_t select_lanes(std::uint32_t least, const Selectable& from, const SelectInto& into) {
  const auto [in, count, first] = from;
  const auto below = hn::Set(LanesI32(), static_cast<std::int32_t>(least) - 1);
  std::uint64_t words[kWords];
  std::uint8_t listed[kWords];
  std::size_t found = 0, i = 0;
  while (i + kWord <= count) {
    const std::size_t all = HWY_MIN(kWords, (count - i) / kWord);
    std::size_t nonzero = 0;
    for (std::size_t word = 0; word < all; ++word) {
      words[word] = hits(in + i + word * kWord, below);
      listed[nonzero] = static_cast<std::uint8_t>(word);
      nonzero += words[word] != 0 ? 1 : 0;
    }
    for (std::size_t at = 0; at < nonzero; ++at) {
      const std::size_t begin = i + listed[at] * kWord;
      for (std::uint64_t bits = words[listed[at]]; bits != 0; bits &= bits - 1) {
        const std::size_t hit = begin + static_cast<std::size_t>(std::countr_zero(bits));
        into.indices[found] = first + static_cast<std::uint32_t>(hit);
        into.values[found++] = in[hit];
      }
    }
    i += all * kWord;
  }
  for (; i < count; ++i) {
    if (magnitude(in[i]) < least) continue;
    into.indices[found] = first + static_cast<std::uint32_t>(i);
    into.values[found++] = in[i];
  }
  return found;
}

/// Counts in one block, so that each lane of a sum stays below 2^31.
std::size_t count_lanes(std::uint32_t least, const float* in, std::size_t count) {
  const LanesI32 d;
  const std::size_t lanes = hn::Lanes(d);
  const auto below = hn::Set(d, static_cast<std::int32_t>(least) - 1);
  auto sums = hn::Zero(d);  // a hit is -1 in its lane
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) sums = hn::Add(sums, hn::VecFromMask(d, hn::Gt(magnitudes_at(in + i), below)));
  std::int32_t parts[16] = {};
  hn::StoreU(sums, d, parts);
  std::size_t found = 0;
  for (const std::int32_t part : parts) found += static_cast<std::size_t>(-part);
  for (; i < count; ++i) found += magnitude(in[i]) >= least ? 1 : 0;
  return found;
}

std::uint32_t largest_lanes(const float* in, std::size_t count) {
  const LanesI32 d;
  const std::size_t lanes = hn::Lanes(d);
  auto most = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) most = hn::Max(most, magnitudes_at(in + i));
  std::int32_t parts[16] = {};
  hn::StoreU(most, d, parts);
  std::uint32_t largest = 0;
  for (const std::int32_t part : parts) largest = HWY_MAX(largest, static_cast<std::uint32_t>(part));
  for (; i < count; ++i) largest = HWY_MAX(largest, magnitude(in[i]));
  return largest;
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(select_lanes);
HWY_EXPORT(count_lanes);
HWY_EXPORT(largest_lanes);

std::size_t select_at_least(std::uint32_t least, const Selectable& from, const SelectInto& into) {
  if (least > 0x7fff'ffffU) return 0;  // above every magnitude; the vectors compare signed numbers
  return HWY_DYNAMIC_DISPATCH(select_lanes)(least, from, into);
}

std::size_t count_at_least(std::uint32_t least, const float* elements, std::size_t count) {
  if (least > 0x7fff'ffffU) return 0;
  constexpr std::size_t kBlock = std::size_t{1} << 30;
  std::size_t found = 0;
  for (std::size_t begin = 0; begin < count; begin += kBlock)
    found += HWY_DYNAMIC_DISPATCH(count_lanes)(least, elements + begin, HWY_MIN(kBlock, count - begin));
  return found;
}

std::uint32_t largest_magnitude(const float* elements, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(largest_lanes)(elements, count);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
