// Casting: the coder shared by codecs that send each element in a smaller type.
#pragma once

#include "compress/codec.hpp"

namespace syncopate::compress {

/// A coder with one additive round: the elements in `wire_type`, rounded to nearest even.
[[nodiscard]] std::unique_ptr<Coder> casting_coder(DType wire_type);

/// Adds what codecs of 16 bits have in common to the words of one; gradients that are already of its type are sent
/// uncoded.
template <DType kType>
[[nodiscard]] constexpr Codec casting_codec(Codec own) {
  own.combines = {.additive = true};
  own.casts_to = kType;
  own.takes = [](DType dtype) { return dtype == DType::f32 || dtype == kType; };
  own.wire_bytes = [](const Settings& /*settings*/, std::span<const Tensor> tensors) {
    return elements_of(tensors) * size_of(kType);
  };
  own.coder = [](const Settings& /*settings*/) { return casting_coder(kType); };
  own.codes = [](const Settings& /*settings*/, const Tensor& whole) { return whole.values.dtype != kType; };
  return own;
}

}  // namespace syncopate::compress
