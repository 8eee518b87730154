// Shared by kernel tests: element bit patterns with every special value, guarded memory, and every instruction set.
#pragma once

#include <hwy/targets.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "syncopate/dtype.hpp"

namespace syncopate::kernel::testing {

inline constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 1000, 4099};
inline constexpr std::size_t kOffsets[] = {0, 1, 2, 4, 8, 12, 31};  ///< bytes past a 64-byte boundary
inline constexpr DType kFloatTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

/// Runs `f(name)` once for each instruction set that this processor has and the library was built for.
template <class F>
void on_every_target(F&& f) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    f(std::string(hwy::TargetName(target)));
  }
  hwy::SetSupportedTargetsForTest(0);
}

/// `bytes` bytes that start `offset` past a 64-byte boundary, between guards that must stay as they are.
class Guarded final {
 public:
  Guarded(std::size_t bytes, std::size_t offset) : memory_(bytes + offset + 3 * kGuard, kMark), bytes_(bytes) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuard;
    at_ = kGuard + (64 - start % 64) % 64 + offset;
  }
  Guarded(const std::vector<std::byte>& content, std::size_t offset) : Guarded(content.size(), offset) {
    if (!content.empty()) std::memcpy(data(), content.data(), content.size());
  }
  [[nodiscard]] std::byte* data() { return memory_.data() + at_; }
  [[nodiscard]] std::vector<std::byte> content() { return {data(), data() + bytes_}; }
  [[nodiscard]] bool guards_hold() const {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if ((i < at_ || i >= at_ + bytes_) && memory_[i] != kMark) return false;
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kMark{0xA5};
  std::vector<std::byte> memory_;
  std::size_t bytes_, at_ = 0;
};

template <class T>
[[nodiscard]] T element(const std::byte* data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof value, sizeof value);
  return value;
}

/// The bits of element `index`, in the low end.
[[nodiscard]] inline std::uint64_t word(DType dtype, const std::byte* data, std::size_t index) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data + index * size_of(dtype), size_of(dtype));
  return bits;
}

/// The bits of infinity; 0 for integers.
[[nodiscard]] inline std::uint64_t infinity_bits(DType dtype) {
  constexpr std::uint64_t bits[] = {0x7f800000u, 0x7ff0000000000000u, 0x7c00u, 0x7f80u, 0, 0, 0};
  return bits[static_cast<int>(dtype)];
}

/// The bits of one.
[[nodiscard]] inline std::uint64_t one_bits(DType dtype) {
  constexpr std::uint64_t bits[] = {0x3f800000u, 0x3ff0000000000000u, 0x3c00u, 0x3f80u, 1, 1, 1};
  return bits[static_cast<int>(dtype)];
}

/// Elements: a quarter special values of either sign (zeros, infinities, NaNs, smallest, largest, one), a quarter
/// random bits, and half ordinary numbers of similar size, so that sums round.
[[nodiscard]] inline std::vector<std::byte> any_elements(DType dtype, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::size_t size = size_of(dtype), bits = 8 * size;
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1), infinity = infinity_bits(dtype), one = one_bits(dtype);
  const std::uint64_t specials[] = {0, 1, one, infinity - 1, infinity, infinity + 1, sign - 1, sign >> 1};
  std::vector<std::byte> content(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t kind = random() % 4, any = random();
    std::uint64_t element_bits = any;
    if (kind == 0) element_bits = specials[any % std::size(specials)] | (any >> 32 & 1 ? sign : 0);
    if (kind >= 2) element_bits = one ^ (any & (sign | infinity >> 5 | (sign - 1) >> 9));
    std::memcpy(content.data() + i * size, &element_bits, size);
  }
  return content;
}

}  // namespace syncopate::kernel::testing
