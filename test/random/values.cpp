// Values: hashes become numbers of every type.
#include "random/values.hpp"

#include <cmath>
#include <cstring>

#include "base/half.hpp"
#include "random/draw.hpp"

namespace syncopate::test {

namespace {

constexpr int kScalingRanks = 12;  // 2^12 and 2^-12 are exact in every type

template <class T>
T load(const Buffer& buffer, std::size_t place) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(buffer.data) + place * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(const Buffer& buffer, std::size_t place, T value) {
  std::memcpy(static_cast<std::byte*>(buffer.data) + place * sizeof(T), &value, sizeof(T));
}

std::uint64_t hash_of(const Inputs& inputs, int rank, std::size_t place) {
  return mixed(inputs.key ^ mixed((std::uint64_t{place} << 8) + static_cast<std::uint64_t>(rank)));
}

void store_real(const Buffer& buffer, std::size_t place, double value) {
  switch (buffer.dtype) {
    case DType::f64:
      return store(buffer, place, value);
    case DType::f16:
      return store(buffer, place, base::to_f16(static_cast<float>(value)));
    case DType::bf16:
      return store(buffer, place, base::to_bf16(static_cast<float>(value)));
    default:
      return store(buffer, place, static_cast<float>(value));
  }
}

void store_whole(const Buffer& buffer, std::size_t place, std::int64_t value) {
  switch (buffer.dtype) {
    case DType::i32:
      return store(buffer, place, static_cast<std::int32_t>(value));
    case DType::u8:
      return store(buffer, place, static_cast<std::uint8_t>(value));
    default:
      return store(buffer, place, value);
  }
}

}  // namespace

double real_input(const Inputs& inputs, int rank, std::size_t place) {
  const std::uint64_t hash = hash_of(inputs, rank, place);
  if (inputs.values == Values::whole) return static_cast<double>(hash % 17) - 8;
  if (inputs.values == Values::factor)
    return std::ldexp(hash % 2 == 0 ? 1 : -1, rank < kScalingRanks ? static_cast<int>(hash / 2 % 3) - 1 : 0);
  return rounded(inputs.dtype, static_cast<double>(hash >> 11) * 0x1p-52 - 1);
}

std::int64_t whole_input(const Inputs& inputs, int rank, std::size_t place) {
  return wrapped(inputs.dtype, hash_of(inputs, rank, place));
}

void fill(const Buffer& buffer, const Inputs& inputs, int rank) {
  for (std::size_t i = 0; i < buffer.count; ++i) {
    if (is_integer(buffer.dtype))
      store_whole(buffer, i, whole_input(inputs, rank, i));
    else
      store_real(buffer, i, real_input(inputs, rank, i));
  }
}

void add(const Buffer& buffer, const Inputs& inputs, int rank) {
  for (std::size_t i = 0; i < buffer.count; ++i) {
    if (is_integer(buffer.dtype))
      store_whole(buffer, i,
                  wrapped(buffer.dtype, static_cast<std::uint64_t>(whole_at(buffer, i)) +
                                            static_cast<std::uint64_t>(whole_input(inputs, rank, i))));
    else
      store_real(buffer, i, real_at(buffer, i) + real_input(inputs, rank, i));
  }
}

bool is_unchanged(const Buffer& buffer, const Inputs& inputs, int rank) {
  for (std::size_t i = 0; i < buffer.count; ++i) {
    const bool is_same = is_integer(buffer.dtype) ? whole_at(buffer, i) == whole_input(inputs, rank, i)
                                                  : real_at(buffer, i) == real_input(inputs, rank, i);
    if (!is_same) return false;
  }
  return true;
}

double real_at(const Buffer& buffer, std::size_t place) {
  switch (buffer.dtype) {
    case DType::f64:
      return load<double>(buffer, place);
    case DType::f16:
      return base::from_f16(load<std::uint16_t>(buffer, place));
    case DType::bf16:
      return base::from_bf16(load<std::uint16_t>(buffer, place));
    default:
      return load<float>(buffer, place);
  }
}

std::int64_t whole_at(const Buffer& buffer, std::size_t place) {
  switch (buffer.dtype) {
    case DType::i32:
      return load<std::int32_t>(buffer, place);
    case DType::u8:
      return load<std::uint8_t>(buffer, place);
    default:
      return load<std::int64_t>(buffer, place);
  }
}

std::int64_t wrapped(DType dtype, std::uint64_t value) noexcept {
  if (dtype == DType::i32) return static_cast<std::int32_t>(value);
  if (dtype == DType::u8) return static_cast<std::uint8_t>(value);
  return static_cast<std::int64_t>(value);
}

double spacing_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f64:
      return 0x1p-52;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

double rounded(DType dtype, double value) noexcept {
  if (dtype == DType::f64) return value;
  const auto single = static_cast<float>(value);
  if (dtype == DType::f16) return base::from_f16(base::to_f16(single));
  return dtype == DType::bf16 ? base::from_bf16(base::to_bf16(single)) : single;
}

}  // namespace syncopate::test
