// Casting: the coder shared by codecs that send each element in a smaller type.
#pragma once

#include "compress/codec.hpp"

namespace syncopate::compress {

/// A coder with one additive round: the elements in `wire_type`, rounded to nearest even.
[[nodiscard]] std::unique_ptr<Coder> casting_coder(DType wire_type);

}  // namespace syncopate::compress
