// Element types, reduction operations, and a typed view of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace syncopate {

/// u8: raw bytes, or unsigned 8-bit integers.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8 };
inline constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};

[[nodiscard]] constexpr bool is_integer(DType dtype) noexcept {
  return dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8;
}

/// `average` is the sum divided by the number of ranks, rounded once at the end. Sums and products of
/// integers wrap around, and their averages truncate toward zero.
enum class ReduceOp : std::uint8_t { sum, min, max, average, product };
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::average,
                                          ReduceOp::product};

[[nodiscard]] std::size_t size_of(DType dtype) noexcept;        ///< bytes per element
[[nodiscard]] std::string_view name_of(DType dtype) noexcept;   ///< "f32" ...
[[nodiscard]] std::string_view name_of(ReduceOp op) noexcept;   ///< "sum" ...
[[nodiscard]] DType dtype_named(std::string_view name);         ///< throws Misuse, naming the allowed names
[[nodiscard]] ReduceOp reduce_op_named(std::string_view name);  ///< throws Misuse, naming the allowed names

template <class T>
concept Element = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::byte>;

template <Element T>
[[nodiscard]] constexpr DType dtype_of() noexcept {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::byte>) return DType::u8;
}

/// A view of `count` elements that someone else owns. f16 and bf16 are given as raw 16-bit words.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;

  Buffer() = default;
  Buffer(void* elements, std::size_t element_count, DType type) noexcept
      : data(elements), count(element_count), dtype(type) {}
  template <Element T>
  Buffer(std::span<T> elements) noexcept  // NOLINT(google-explicit-constructor): a view of a view
      : data(elements.data()), count(elements.size()), dtype(dtype_of<T>()) {}

  [[nodiscard]] std::span<std::byte> bytes() const noexcept {
    return {static_cast<std::byte*>(data), count * size_of(dtype)};
  }
};

/// A view of `count` elements that are only read.
struct ConstBuffer {
  const void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;

  ConstBuffer() = default;
  ConstBuffer(const void* elements, std::size_t element_count, DType type) noexcept
      : data(elements), count(element_count), dtype(type) {}
  ConstBuffer(const Buffer& buffer) noexcept  // NOLINT(google-explicit-constructor): a view of a view
      : data(buffer.data), count(buffer.count), dtype(buffer.dtype) {}
  template <class T>
  requires Element<std::remove_const_t<T>> ConstBuffer(std::span<T> elements)
  noexcept  // NOLINT(google-explicit-constructor): a view of a view
      : data(elements.data()), count(elements.size()), dtype(dtype_of<std::remove_const_t<T>>()) {}

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(data), count * size_of(dtype)};
  }
};

/// Elements [begin, end) of a vector.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] constexpr std::size_t size() const noexcept { return end - begin; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// Part `index` of `count` elements cut into `parts` pieces whose sizes differ by at most one, larger ones first.
[[nodiscard]] constexpr Range even_part(std::size_t count, std::size_t parts, std::size_t index) noexcept {
  const std::size_t base = count / parts, larger = count % parts;
  const std::size_t begin = index * base + (index < larger ? index : larger);
  return {begin, begin + base + (index < larger ? 1 : 0)};
}

}  // namespace syncopate
