// The coder that sends 16-bit values with coded exponents: parts are scattered, added up by their owners, and gathered.
#pragma once

#include <memory>

#include "compress/codec.hpp"

namespace syncopate::compress::lossless {

/// A scatter round and a gather round of blocks (block.hpp). All tensors count as one vector in the type that travels:
/// their own if it has 16 bits, else `wire_type`, rounded to nearest even. Each rank owns some of its blocks, and sends
///
///   average = round16(fl(fl(... fl(x_0 + x_1) ... + x_(N-1)) / N)),  summed as f32 in the order of the ranks
///
/// so that a value is rounded once after the sum, not at every hop, and all ranks decode the same bits.
[[nodiscard]] std::unique_ptr<Coder> lossless_coder(DType wire_type);
/// For Codec::wire_bytes, exact where nothing gets shorter.
[[nodiscard]] std::size_t lossless_bytes(std::span<const Tensor> tensors);

}  // namespace syncopate::compress::lossless
