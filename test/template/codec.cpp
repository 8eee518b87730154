// Template of a codec: every rank sends its gradients as they are, and every rank averages all packets.
// Replace this line by the source: authors, title, venue, equation numbers.
//
//   packet = g (f32);  average = (1/N) sum of packets, in the order of the ranks
//   size: 4 bytes per element; N - 1 packets reach every rank
#include "compress/codec.hpp"

#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::compress::codec {

namespace {

bool takes(DType dtype) { return dtype == DType::f32; }

std::size_t wire_bytes(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return elements_of(tensors) * sizeof(float);
}

/// One gather round. A codec with several rounds returns the next one from `next`.
class PlainCoder final : public Coder {
 public:
  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& /*info*/, base::Bytes wire) override {
    tensors_ = tensors;
    std::byte* into = wire.data();
    for (const Tensor& tensor : tensors) {
      std::memcpy(into, tensor.values.data, tensor.values.bytes().size());
      into += tensor.values.bytes().size();
    }
    packet_bytes_ = static_cast<std::size_t>(into - wire.data());
    return {.combine = Combine::gather, .payload = Buffer(wire.data(), packet_bytes_, DType::u8), .ends = true};
  }

  [[nodiscard]] std::optional<Round> next(Answer answer) override {
    for (const base::ConstBytes packet : answer.packets)  // bytes of other ranks: check before use
      if (packet.size() != packet_bytes_) throw Corrupt("a packet of codec plain has the wrong length");
    std::size_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      auto* const values = static_cast<float*>(tensor.values.data);
      for (std::size_t i = 0; i < tensor.values.count; ++i, offset += sizeof(float)) {
        double sum = 0;
        for (const base::ConstBytes packet : answer.packets) {
          float value = 0;
          std::memcpy(&value, packet.data() + offset, sizeof value);
          sum += static_cast<double>(value);
        }
        values[i] = static_cast<float>(sum / static_cast<double>(answer.packets.size()));
      }
    }
    return std::nullopt;
  }

 private:
  std::span<const Tensor> tensors_;
  std::size_t packet_bytes_ = 0;
};

std::unique_ptr<Coder> coder(const Settings& /*settings*/) { return std::make_unique<PlainCoder>(); }

}  // namespace

extern constinit const Codec plain{
    .name = "plain",
    .summary = "Gradients as they are, in packets that every rank gathers",
    .source = "the template of docs/extending.md",
    .combines = {.gather = true},
    .decodes_alone = false,
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
};

}  // namespace syncopate::compress::codec
