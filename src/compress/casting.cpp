// Casting: converts tensors into the payload and back.
#include "compress/casting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernel/cast.hpp"
#include "kernel/reduce.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress {

namespace {

class CastingCoder final : public Coder {
 public:
  explicit CastingCoder(DType wire_type) : wire_type_(wire_type) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& /*info*/, base::Bytes wire) override {
    tensors_ = tensors;
    wire_ = wire.data();
    std::byte* into = wire_;
    for (const Tensor& tensor : tensors_) {
      kernel::cast({tensor.values.dtype, wire_type_}, tensor.values.bytes().data(), into, tensor.values.count);
      into += tensor.values.count * size_of(wire_type_);
    }
    return {.combine = Combine::additive, .payload = Buffer(wire_, elements_of(tensors_), wire_type_), .ends = true};
  }

  [[nodiscard]] std::optional<Round> next(Answer /*answer*/) override {
    const std::byte* from = wire_;
    for (const Tensor& tensor : tensors_) {
      kernel::cast({wire_type_, tensor.values.dtype}, from, tensor.values.bytes().data(), tensor.values.count);
      from += tensor.values.count * size_of(wire_type_);
    }
    return std::nullopt;
  }

  void add(base::ConstBytes packet, std::span<float> into) const override {
    if (packet.size() != into.size() * size_of(wire_type_))
      throw Corrupt(fmt::format("a packet of {} bytes for {} elements", packet.size(), into.size()));
    constexpr std::size_t kTile = 4096;
    std::array<float, kTile> tile;
    for (std::size_t begin = 0; begin < into.size(); begin += kTile) {
      const std::size_t count = std::min(kTile, into.size() - begin);
      auto* const decoded = reinterpret_cast<std::byte*>(tile.data());
      kernel::cast({wire_type_, DType::f32}, packet.data() + begin * size_of(wire_type_), decoded, count);
      kernel::reduce({}, reinterpret_cast<std::byte*>(into.data() + begin), decoded, count);
    }
  }

 private:
  DType wire_type_;
  std::span<const Tensor> tensors_;
  std::byte* wire_ = nullptr;
};

}  // namespace

std::unique_ptr<Coder> casting_coder(DType wire_type) { return std::make_unique<CastingCoder>(wire_type); }

}  // namespace syncopate::compress
