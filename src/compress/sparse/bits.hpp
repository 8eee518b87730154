// Bits: fields of any width in a run of bytes, lowest bit first.
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

/// Writes into memory that is long enough for all that is written.
class BitWriter final {
 public:
  explicit BitWriter(base::Bytes into) : at_(into.data()), end_(into.data() + into.size()) {}

  /// `width` bits, at most 57; `value` has none above them.
  void bits(std::uint64_t value, unsigned width) {
    held_ |= value << count_;
    count_ += width;
    flush();
  }
  void ones(std::uint64_t count) {
    for (; count >= 32; count -= 32) bits(0xffff'ffff, 32);
    bits((std::uint64_t{1} << count) - 1, static_cast<unsigned>(count));
  }
  /// Writes the last bits, with zeros behind them.
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

/// Reads what a BitWriter wrote; throws Corrupt where the bytes end too early.
class BitReader final {
 public:
  explicit BitReader(base::ConstBytes from) : at_(from.data()), end_(from.data() + from.size()) {}

  /// At most 32 bits.
  [[nodiscard]] std::uint64_t bits(unsigned width) {
    fill(width);
    const std::uint64_t value = held_ & ((std::uint64_t{1} << width) - 1);
    drop(width);
    return value;
  }
  /// The number of ones before the next zero, which is read too.
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
  /// Whether nothing is left but the zeros of a last byte.
  [[nodiscard]] bool at_end() const noexcept { return at_ == end_ && count_ < 8 && held_ == 0; }

 private:
  /// Holds at least `width` bits.
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
