// Arrays of any framework as buffers of the library: used in place, or refused by name.
#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::bind {

/// The type that a caller gives to the elements of all arrays of a call, of equal width (bfloat16 in an array of
/// uint16); none: the arrays' own types.
using TypeName = std::optional<std::string>;

/// An array and the memory that it keeps alive. Copied and destroyed with the GIL.
struct Array {
  nb::ndarray<> owner;
  Buffer buffer;
};

/// The array in place, flat, through DLPack or the buffer protocol. Throws Misuse with the reason if it cannot be
/// used: it offers neither, is on a device, is read-only, has gaps between its elements, or has a type that the
/// library lacks. `role` names the argument.
[[nodiscard]] Array array_of(nb::handle object, const TypeName& type, const char* role);

/// As array_of, for arrays that are only read, of any type: those may be read-only.
[[nodiscard]] nb::ndarray<nb::ro> read_array_of(nb::handle object, const char* role);

/// The shape and type of memory that the library owns.
struct Shape {
  std::vector<std::size_t> lengths;  ///< empty: a scalar
  DType dtype = DType::f32;
  [[nodiscard]] std::size_t elements() const;
};
/// An int or a sequence of ints.
[[nodiscard]] Shape shape_of(nb::handle lengths, const std::string& dtype);

/// Keeps `memory` for as long as the object lives.
template <class Memory>
[[nodiscard]] nb::capsule owner_of(Memory memory) {
  return {new Memory(std::move(memory)), [](void* kept) noexcept { delete static_cast<Memory*>(kept); }};
}

using OwnArray = nb::ndarray<nb::array_api>;
/// Memory of the library as an array, without a copy; `owner` lives as long as the array.
[[nodiscard]] OwnArray array_over(void* data, const Shape& shape, nb::handle owner);

}  // namespace syncopate::bind
