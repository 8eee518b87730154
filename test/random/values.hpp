// Values: what each rank puts into a vector, a function of a key, the rank and the place.
#pragma once

#include <cstdint>

#include "syncopate/dtype.hpp"

namespace syncopate::test {

/// Whole: small whole numbers, whose sums over a few ranks are exact in every type. Real: of floating-point types any
/// number between -1 and 1. Factor: a half, one or two of either sign, of later ranks only one, so that products are
/// exact. Integers take all their values under each.
enum class Values : std::uint8_t { whole, real, factor };

struct Inputs {
  std::uint64_t key = 0;
  DType dtype = DType::f32;
  Values values = Values::whole;
};

/// Floating-point types.
[[nodiscard]] double real_input(const Inputs& inputs, int rank, std::size_t place);
/// Integer types.
[[nodiscard]] std::int64_t whole_input(const Inputs& inputs, int rank, std::size_t place);
void fill(const Buffer& buffer, const Inputs& inputs, int rank);

/// buffer += the rank's values, which are whole ones.
void add(const Buffer& buffer, const Inputs& inputs, int rank);
[[nodiscard]] bool is_unchanged(const Buffer& buffer, const Inputs& inputs, int rank);

[[nodiscard]] double real_at(const Buffer& buffer, std::size_t place);
[[nodiscard]] std::int64_t whole_at(const Buffer& buffer, std::size_t place);
/// As a sum of that type wraps around.
[[nodiscard]] std::int64_t wrapped(DType dtype, std::uint64_t value) noexcept;
/// Relative distance of neighbouring numbers.
[[nodiscard]] double spacing_of(DType dtype) noexcept;
/// The nearest number of that type.
[[nodiscard]] double rounded(DType dtype, double value) noexcept;

}  // namespace syncopate::test
