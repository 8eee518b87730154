// Checks the DLPack description of an array, and converts it to the library's types.
#include "array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "syncopate/error.hpp"

namespace syncopate::bind {

namespace {

using Code = nb::dlpack::dtype_code;

struct DlpackType {
  DType dtype;
  Code code;
  std::uint8_t bits;
};
constexpr DlpackType kTypes[] = {{DType::f32, Code::Float, 32}, {DType::f64, Code::Float, 64},
                                 {DType::f16, Code::Float, 16}, {DType::bf16, Code::Bfloat, 16},
                                 {DType::i32, Code::Int, 32},   {DType::i64, Code::Int, 64},
                                 {DType::u8, Code::UInt, 8}};
static_assert(std::size(kTypes) == std::size(kDTypes));

constexpr int kCpu = 1, kPinned = 3;  // of DLPack's device types: memory that the processor addresses

std::string name_of_type(nb::dlpack::dtype type) {
  constexpr std::pair<Code, const char*> kNames[] = {{Code::Int, "int"},         {Code::UInt, "uint"},
                                                     {Code::Float, "float"},     {Code::Bfloat, "bfloat"},
                                                     {Code::Complex, "complex"}, {Code::Bool, "bool"}};
  for (const auto& [code, name] : kNames)
    if (static_cast<std::uint8_t>(code) == type.code) return fmt::format("{}{}", name, type.bits);
  return fmt::format("DLPack type {} of {} bits", type.code, type.bits);
}

std::string type_text(nb::handle object) { return nb::cast<std::string>(nb::str(object.type())); }

[[noreturn]] void refuse(nb::handle object, const char* role) {
  throw Misuse(
      fmt::format("{} ({}) is not an array; allowed: what offers DLPack (NumPy, PyTorch, JAX, CuPy) or the buffer "
                  "protocol (array.array, bytearray, memoryview)",
                  role, type_text(object)));
}

nb::ndarray<> writable(nb::handle object, const char* role) {
  nb::ndarray<> array;
  if (nb::try_cast(object, array, false) && array.is_valid()) return array;
  nb::ndarray<nb::ro> readable;
  if (nb::try_cast(object, readable, false) && readable.is_valid())
    throw Misuse(fmt::format("{} ({}) is read-only, and the result is written into it; pass a writable copy", role,
                             type_text(object)));
  refuse(object, role);
}

template <class Array>
bool is_dense(const Array& array) {
  if (array.size() == 0 || array.stride_ptr() == nullptr) return true;
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride) return false;
    stride *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

std::string allowed_types() {
  std::string list;
  for (const DType dtype : kDTypes) list += (list.empty() ? "" : ", ") + std::string(name_of(dtype));
  return list;
}

DType dtype_of(nb::dlpack::dtype type, const TypeName& wanted, const char* role) {
  if (wanted) {
    const DType dtype = dtype_named(*wanted);
    if (type.lanes == 1 && type.bits == 8 * size_of(dtype)) return dtype;
    throw Misuse(fmt::format("{} has elements of {}, which cannot be taken as {}: that has {} bits", role,
                             name_of_type(type), *wanted, 8 * size_of(dtype)));
  }
  for (const DlpackType& row : kTypes)
    if (type.lanes == 1 && static_cast<std::uint8_t>(row.code) == type.code && row.bits == type.bits) return row.dtype;
  throw Misuse(
      fmt::format("{} has elements of {}; allowed: {}. The argument dtype treats the elements as another type "
                  "of the same width, which is right wherever nothing is reduced",
                  role, name_of_type(type), allowed_types()));
}

template <class Array>
void require_in_place(const Array& array, const char* role) {
  const int device = array.device_type();
  if (device != kCpu && device != kPinned)
    throw Misuse(
        fmt::format("{} is in the memory of a device (DLPack type {}), and the library works in the CPU's; "
                    "copy it there, reduce it, and copy it back",
                    role, device));
  if (!is_dense(array))
    throw Misuse(
        fmt::format("{} is not contiguous: there are gaps between its elements, or they are not in C order; "
                    "pass a contiguous copy",
                    role));
}

}  // namespace

nb::ndarray<nb::ro> read_array_of(nb::handle object, const char* role) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array, false) || !array.is_valid()) refuse(object, role);
  require_in_place(array, role);
  return array;
}

Array array_of(nb::handle object, const TypeName& type, const char* role) {
  nb::ndarray<> array = writable(object, role);
  require_in_place(array, role);
  const Buffer buffer(array.data(), array.size(), dtype_of(array.dtype(), type, role));
  return {std::move(array), buffer};
}

std::size_t Shape::elements() const {
  return std::accumulate(lengths.begin(), lengths.end(), std::size_t{1}, std::multiplies<>());
}

Shape shape_of(nb::handle lengths, const std::string& dtype) {
  Shape shape{{}, dtype_named(dtype)};
  if (nb::isinstance<nb::int_>(lengths)) {
    shape.lengths.push_back(nb::cast<std::size_t>(lengths));
    return shape;
  }
  for (const nb::handle length : nb::borrow<nb::object>(lengths))
    shape.lengths.push_back(nb::cast<std::size_t>(length));
  return shape;
}

OwnArray array_over(void* data, const Shape& shape, nb::handle owner) {
  const DlpackType& row = *std::ranges::find(kTypes, shape.dtype, &DlpackType::dtype);
  const nb::dlpack::dtype type{static_cast<std::uint8_t>(row.code), row.bits, 1};
  return OwnArray(data, shape.lengths.size(), shape.lengths.data(), owner, nullptr, type, kCpu);
}

}  // namespace syncopate::bind
