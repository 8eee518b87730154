// Bits: fields of any width in a byte sequence, lowest bit first.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {

[[nodiscard]] constexpr std::size_t bytes_of_bits(std::uint64_t bits) noexcept {
  return static_cast<std::size_t>((bits + 7) / 8);
}

/// Writes without bounds checks: the caller provides enough memory.
class BitWriter final {
 public:
  explicit BitWriter(base::Bytes into) : at_(into.data()), end_(into.data() + into.size()) {}

  /// Writes `width` bits, at most 57; higher bits of `value` must be zero.
  void bits(std::uint64_t value, unsigned width) {
    held_ |= value << count_;
    count_ += width;
    flush();
  }
  void ones(std::uint64_t count) {
    for (; count >= 32; count -= 32) bits(0xffff'ffff, 32);
    bits((std::uint64_t{1} << count) - 1, static_cast<unsigned>(count));
  }
  /// Writes the last bits, padded with zeros to a whole byte.
  void finish() {
    for (; count_ > 0; count_ -= std::min(count_, 8U), held_ >>= 8) *at_++ = std::byte(held_ & 0xff);
  }

 private:
  /// Leaves fewer than 8 bits.
  void flush() {
    if (end_ - at_ >= 8) {
      std::memcpy(at_, &held_, sizeof held_);
      const unsigned whole = count_ / 8;
      at_ += whole;
      held_ = whole == 8 ? 0 : held_ >> (8 * whole);
      count_ %= 8;
      return;
    }
    for (; count_ >= 8; count_ -= 8, held_ >>= 8) *at_++ = std::byte(held_ & 0xff);
  }

  std::byte* at_;
  std::byte* const end_;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;  ///< bits in held_, below 8 between calls
};

/// Reads the output of BitWriter; throws Corrupt if the bytes end too early.
class BitReader final {
 public:
  explicit BitReader(base::ConstBytes from) : at_(from.data()), end_(from.data() + from.size()) {}

  /// Reads `width` bits, at most 32.
  [[nodiscard]] std::uint64_t bits(unsigned width) {
    fill(width);
    const std::uint64_t value = held_ & ((std::uint64_t{1} << width) - 1);
    drop(width);
    return value;
  }
  /// Reads up to and including the next zero; returns the number of ones before it.
  [[nodiscard]] std::uint64_t ones() {
    std::uint64_t total = 0;
    while (true) {
      fill(1);
      const auto run = static_cast<unsigned>(std::min(std::countr_one(held_), static_cast<int>(count_)));
      total += run;
      drop(run);
      if (count_ == 0) continue;
      drop(1);
      return total;
    }
  }
  /// Whether only the zero padding of the last byte remains.
  [[nodiscard]] bool at_end() const noexcept { return at_ == end_ && count_ < 8 && held_ == 0; }

 private:
  /// Loads bits until at least `width` are held.
  void fill(unsigned width) {
    if (count_ >= width) return;
    while (count_ <= 56 && at_ != end_) {
      held_ |= std::to_integer<std::uint64_t>(*at_++) << count_;
      count_ += 8;
    }
    if (count_ < width) throw Corrupt("a packet ends within a field");
  }
  void drop(unsigned width) {
    held_ = width == 64 ? 0 : held_ >> width;
    count_ -= width;
  }

  const std::byte* at_;
  const std::byte* const end_;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;
};

}  // namespace syncopate::compress::sparse
