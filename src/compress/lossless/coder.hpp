// Lossless coder: scatters 16-bit values with coded exponents; owners sum their parts, and the averages are gathered.
#pragma once

#include <memory>

#include "compress/codec.hpp"

namespace syncopate::compress::lossless {

/// A scatter round and a gather round of blocks (block.hpp). All tensors form one vector in the type that is sent:
/// their own if it has 16 bits, otherwise `wire_type`, rounded to nearest even. Each rank owns some blocks and sends
///
///   average = round16(fl(fl(... fl(x_0 + x_1) ... + x_(N-1)) / N)),  summed as f32 in the order of the ranks
///
/// A value is rounded once after the sum instead of at every hop, and all ranks decode the same bits.
[[nodiscard]] std::unique_ptr<Coder> lossless_coder(DType wire_type);
/// For Codec::wire_bytes; exact if no block becomes shorter.
[[nodiscard]] std::size_t lossless_bytes(std::span<const Tensor> tensors);

}  // namespace syncopate::compress::lossless
