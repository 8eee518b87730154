// No codec: the packet is the bucket itself, in the arena; nothing is copied.
// Data-parallel SGD as it is; the baseline of every comparison.
//
//   size:   the element's own bytes
#include "compress/codec.hpp"

namespace syncopate::compress::codec {

namespace {

class InPlace final : public Coder {
 public:
  [[nodiscard]] Packet encode(Buffer gradient) override { return {gradient}; }
  void decode(const Packet& /*packet*/, Buffer /*gradient*/) override {}
};

std::unique_ptr<Coder> coder(Buffer /*gradient*/) { return std::make_unique<InPlace>(); }

}  // namespace

extern constinit const Codec none{
    .name = "none",
    .summary = "Gradients as they are, in place",
    .source = "the baseline",
    .combine = Combine::additive,
    .coder = coder,
};

}  // namespace syncopate::compress::codec
