// Selecting by magnitude on the processor's widest vectors: hits are found without a branch.
#include "kernel/select.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/select.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

constexpr std::size_t kWord = 64;   ///< elements whose hits are one word of bits
constexpr std::size_t kWords = 64;  ///< looked at before any hit is written

using Lanes = hn::CappedTag<float, 16>;
using LanesI32 = hn::RebindToSigned<Lanes>;

/// Bit i: whether the magnitude of in[i] is above `below`.
HWY_INLINE std::uint64_t hits(const float* in, hn::Vec<LanesI32> below) {
  const Lanes df;
  const LanesI32 d;
  const std::size_t lanes = hn::Lanes(d);
  const auto mask = hn::Set(d, 0x7fff'ffff);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < kWord; i += lanes) {
    const auto magnitudes = hn::And(hn::BitCast(d, hn::LoadU(df, in + i)), mask);
    std::uint8_t bits[8] = {};
    static_cast<void>(hn::StoreMaskBits(d, hn::Gt(magnitudes, below), bits));
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

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(select_lanes);

std::size_t select_at_least(std::uint32_t least, const Selectable& from, const SelectInto& into) {
  if (least > 0x7fff'ffffU) return 0;  // above every magnitude; the vectors compare signed numbers
  return HWY_DYNAMIC_DISPATCH(select_lanes)(least, from, into);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
