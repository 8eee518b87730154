// 16-bit floating point with entropy-coded exponents: packets decode to the same bits and have fewer bytes.
// ZipCCL uses this scheme on GPUs. Each block of 32768 values has a Huffman code limited to 12 bits (Larmore and
// Hirschberg, JACM 1990).
//
//   bf16 and fp16 gradients are sent unchanged; f32 gradients are rounded to nearest even to the type of PARAMETER
//   average = round16(sum of N ranks in f32 / N): rounded once, by the rank that owns the element
//   Limit: averaging is arithmetic, even on one rank, so a signalling NaN becomes a quiet NaN
//   size: at most 2 bytes per element and 1 byte per 32768 (values that do not compress); for normally distributed
//         elements about 1.33 (bf16: 8 + 2.6 bits) or 1.71 (fp16: 8 + 5.6 bits); 2 (N - 1)/N of them pass a port
#include "base/require.hpp"
#include "compress/lossless/coder.hpp"

namespace syncopate::compress::codec {

namespace {

/// Bytes per normally distributed element, headers included.
constexpr double kUsualBf16 = 1.33, kUsualFp16 = 1.71;

bool takes(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

constexpr std::string_view kTypes[] = {"bf16", "fp16"};
constexpr Parameter kType[] = {{.name = "type", .names = kTypes}};

DType wire_type(const Settings& settings) { return settings.numbers[0] == 0 ? DType::bf16 : DType::f16; }

std::size_t wire_bytes(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return lossless::lossless_bytes(tensors);
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) {
    const DType own = tensor.values.dtype, type = size_of(own) == 2 ? own : wire_type(settings);
    bytes += (type == DType::bf16 ? kUsualBf16 : kUsualFp16) * static_cast<double>(tensor.values.count);
  }
  return {{Combine::scatter, bytes}, {Combine::gather, bytes, 1}};
}

std::unique_ptr<Coder> coder(const Settings& settings) { return lossless::lossless_coder(wire_type(settings)); }

}  // namespace

extern constinit const Codec lossless{
    .name = "lossless",
    .summary = "16-bit values with entropy-coded exponents, bit-exact: `lossless:bf16` or `lossless:fp16`",
    .source = "Huffman, Proc. IRE 1952, applied to exponents as in ZipCCL (GPUs)",
    .combines = {.gather = true, .scatter = true},
    .parameter = "bf16",
    .parameters = kType,
    .one_round = false,
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
};

}  // namespace syncopate::compress::codec
