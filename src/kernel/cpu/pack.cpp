// Packing on the processor's widest vectors of bytes: bit by bit for all fields at once, and trits as digits.
#include "kernel/pack.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/pack.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

using Fields = hn::CappedTag<std::uint8_t, 64>;  ///< their number divides the block sizes
using VField = hn::Vec<Fields>;

/// Bit `p` of 64 fields.
HWY_INLINE std::uint64_t gathered(const std::uint8_t* fields, unsigned p) {
  const Fields d;
  const VField bit = hn::Set(d, static_cast<std::uint8_t>(1U << p));
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < kBitBlock; i += hn::Lanes(d)) {
    std::uint8_t bits[sizeof word] = {};
    static_cast<void>(hn::StoreMaskBits(d, hn::TestBit(hn::LoadU(d, fields + i), bit), bits));
    std::uint64_t part;
    std::memcpy(&part, bits, sizeof part);
    word |= part << i;
  }
  return word;
}

void pack_bits_lanes(const BitFields& kind, const std::uint8_t* fields, std::size_t blocks, std::byte* into) {
  for (std::size_t block = 0; block < blocks; ++block, fields += kBitBlock)
    for (unsigned p = 0; p < kind.bits; ++p, into += sizeof(std::uint64_t)) {
      const std::uint64_t word = gathered(fields, p);
      std::memcpy(into, &word, sizeof word);
    }
}

/// The fields from `i` on, from the words of their bits.
HWY_INLINE VField spread(const std::uint64_t* words, unsigned count, std::size_t i) {
  const Fields d;
  VField field = hn::Zero(d);
  for (unsigned p = 0; p < count; ++p) {
    std::uint8_t bits[sizeof *words];
    const std::uint64_t part = words[p] >> i;
    std::memcpy(bits, &part, sizeof part);
    const VField bit = hn::Set(d, static_cast<std::uint8_t>(1U << p));
    field = hn::Or(field, hn::IfThenElseZero(hn::LoadMaskBits(d, bits), bit));
  }
  return field;
}

bool unpack_bits_lanes(const BitFields& kind, const std::byte* from, std::size_t blocks, std::uint8_t* fields) {
  const Fields d;
  VField most = hn::Zero(d);
  std::uint64_t words[8];
  for (std::size_t block = 0; block < blocks; ++block, fields += kBitBlock) {
    std::memcpy(words, from, kind.bits * sizeof *words);
    from += kind.bits * sizeof *words;
    for (std::size_t i = 0; i < kBitBlock; i += hn::Lanes(d)) {
      const VField field = spread(words, kind.bits, i);
      most = hn::Max(most, field);
      hn::StoreU(field, d, fields + i);
    }
  }
  return hn::AllFalse(d, hn::Gt(most, hn::Set(d, kind.most)));
}

constexpr std::size_t kStripe = kTritBlock / 5;  ///< fields with the same position in their bytes

void pack_trits_lanes(const std::uint8_t* fields, std::size_t blocks, std::byte* into) {
  const Fields d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t block = 0; block < blocks; ++block, fields += kTritBlock, into += kStripe)
    for (std::size_t i = 0; i < kStripe; i += lanes) {
      VField sum = hn::LoadU(d, fields + 4 * kStripe + i);
      for (std::size_t s = 4; s-- > 0;)
        sum = hn::Add(hn::Add(sum, hn::Add(sum, sum)), hn::LoadU(d, fields + s * kStripe + i));
      store(sum, d, into + i);
    }
}

/// Removes the digit of weight `power` from the number. The digit is at most 2; any excess remains and is detected.
HWY_INLINE VField digit(VField& number, std::uint8_t power) {
  const Fields d;
  const auto reaches_one = hn::Gt(number, hn::Set(d, static_cast<std::uint8_t>(power - 1)));
  const auto reaches_two = hn::Gt(number, hn::Set(d, static_cast<std::uint8_t>(2 * power - 1)));
  const VField taken = hn::IfThenElseZero(reaches_one, hn::Set(d, power));
  number = hn::Sub(number, hn::Add(taken, hn::IfThenElseZero(reaches_two, hn::Set(d, power))));
  const VField one = hn::Set(d, 1);
  return hn::Add(hn::IfThenElseZero(reaches_one, one), hn::IfThenElseZero(reaches_two, one));
}

bool unpack_trits_lanes(const std::byte* from, std::size_t blocks, std::uint8_t* fields) {
  const Fields d;
  const std::size_t lanes = hn::Lanes(d);
  VField most = hn::Zero(d);
  for (std::size_t block = 0; block < blocks; ++block, from += kStripe, fields += kTritBlock)
    for (std::size_t i = 0; i < kStripe; i += lanes) {
      VField number = load(d, from + i);
      std::uint8_t power = 81;
      for (std::size_t s = 5; --s > 0; power /= 3) hn::StoreU(digit(number, power), d, fields + s * kStripe + i);
      most = hn::Max(most, number);
      hn::StoreU(number, d, fields + i);
    }
  return hn::AllFalse(d, hn::Gt(most, hn::Set(d, 2)));
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(pack_bits_lanes);
HWY_EXPORT(unpack_bits_lanes);
HWY_EXPORT(pack_trits_lanes);
HWY_EXPORT(unpack_trits_lanes);

void pack_bits(const BitFields& kind, const std::uint8_t* fields, std::size_t blocks, std::byte* into) {
  HWY_DYNAMIC_DISPATCH(pack_bits_lanes)(kind, fields, blocks, into);
}
bool unpack_bits(const BitFields& kind, const std::byte* from, std::size_t blocks, std::uint8_t* fields) {
  return HWY_DYNAMIC_DISPATCH(unpack_bits_lanes)(kind, from, blocks, fields);
}
void pack_trits(const std::uint8_t* fields, std::size_t blocks, std::byte* into) {
  HWY_DYNAMIC_DISPATCH(pack_trits_lanes)(fields, blocks, into);
}
bool unpack_trits(const std::byte* from, std::size_t blocks, std::uint8_t* fields) {
  return HWY_DYNAMIC_DISPATCH(unpack_trits_lanes)(from, blocks, fields);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
