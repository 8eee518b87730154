// Codecs by name, and the coder of those that only cast.
#include "compress/codec.hpp"

#include <vector>

#include "base/shelf.hpp"
#include "kernel/cast.hpp"

namespace syncopate::compress {

const Codec& codec_named(std::string_view name) { return base::entry_named("codec", name, codecs()); }

namespace {

class CastingCoder final : public Coder {
 public:
  CastingCoder(Buffer gradient, DType wire_type) : wire_type_(wire_type), wire_(gradient.count * size_of(wire_type)) {}

  [[nodiscard]] Packet encode(Buffer gradient) override {
    kernel::cast({gradient.dtype, wire_type_}, gradient.bytes().data(), wire_.data(), gradient.count);
    return {Buffer(wire_.data(), gradient.count, wire_type_)};
  }
  void decode(const Packet& packet, Buffer gradient) override {
    kernel::cast({wire_type_, gradient.dtype}, packet.payload.bytes().data(), gradient.bytes().data(), gradient.count);
  }

 private:
  DType wire_type_;
  std::vector<std::byte> wire_;
};

}  // namespace

std::unique_ptr<Coder> casting_coder(Buffer gradient, DType wire_type) {
  base::require(gradient.dtype == DType::f32, "codec {} takes f32 gradients; these are {}", name_of(wire_type),
                name_of(gradient.dtype));
  return std::make_unique<CastingCoder>(gradient, wire_type);
}

}  // namespace syncopate::compress
