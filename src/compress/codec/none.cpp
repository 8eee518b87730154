// No codec: the payload is the gradients themselves in the arena, without a copy.
// Plain data-parallel SGD; the baseline of every comparison.
//
//   size:   the elements' own bytes
#include <fmt/format.h>

#include <cstring>

#include "compress/codec.hpp"
#include "kernel/reduce.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::codec {

namespace {

/// Whether the tensors are contiguous in memory.
bool adjoin(std::span<const Tensor> tensors) {
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    const std::span<std::byte> before = tensors[i - 1].values.bytes();
    if (before.data() + before.size() != tensors[i].values.data) return false;
  }
  return true;
}

class InPlace final : public Coder {
 public:
  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& /*info*/, base::Bytes wire) override {
    tensors_ = tensors;
    packed_ = adjoin(tensors) ? nullptr : wire.data();
    each([](std::byte* packed, base::Bytes values) { std::memcpy(packed, values.data(), values.size()); });
    void* const payload = packed_ == nullptr ? tensors.front().values.data : packed_;
    return {Combine::additive, Buffer(payload, elements_of(tensors), tensors.front().values.dtype)};
  }

  [[nodiscard]] std::optional<Round> next(Answer /*answer*/) override {
    each([](const std::byte* packed, base::Bytes values) { std::memcpy(values.data(), packed, values.size()); });
    return std::nullopt;
  }

  void add(base::ConstBytes packet, std::span<float> into) const override {
    if (packet.size() != into.size_bytes())
      throw Corrupt(fmt::format("{} bytes for {} elements", packet.size(), into.size()));
    kernel::reduce({}, std::as_writable_bytes(into).data(), packet.data(), into.size());
  }

 private:
  template <class Copy>
  void each(Copy copy) const {
    std::byte* packed = packed_;
    for (std::size_t i = 0; packed_ != nullptr && i < tensors_.size(); ++i) {
      copy(packed, tensors_[i].values.bytes());
      packed += tensors_[i].values.bytes().size();
    }
  }

  std::span<const Tensor> tensors_;
  std::byte* packed_ = nullptr;  ///< used if the tensors do not adjoin
};

bool takes(DType /*dtype*/) { return true; }

std::size_t wire_bytes(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return adjoin(tensors) ? 0 : elements_of(tensors) * size_of(tensors.front().values.dtype);
}

/// The number of bytes is the same in place and packed.
std::vector<RoundBytes> rounds(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) bytes += static_cast<double>(tensor.values.bytes().size());
  return {{Combine::additive, bytes}};
}

std::unique_ptr<Coder> coder(const Settings& /*settings*/) { return std::make_unique<InPlace>(); }

}  // namespace

extern constinit const Codec none{
    .name = "none",
    .summary = "Gradients unchanged, in place",
    .source = "the baseline",
    .combines = {.additive = true},
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
};

}  // namespace syncopate::compress::codec
