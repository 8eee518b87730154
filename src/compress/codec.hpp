// Codec: one entry of the shelf codec/: how a bucket of gradients becomes fewer bytes and comes back.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "compress/packet.hpp"

namespace syncopate::compress {

/// A codec at work on one bucket: it owns the packet's memory, if any, between steps.
class Coder {
 public:
  virtual ~Coder() = default;
  [[nodiscard]] virtual Packet encode(Buffer gradient) = 0;
  virtual void decode(const Packet& packet, Buffer gradient) = 0;
};

struct Codec {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  Combine combine;
  /// A coder for a bucket like `gradient`; throws Misuse if its type cannot be coded.
  std::unique_ptr<Coder> (*coder)(Buffer gradient);
};

/// Every codec, by name (generated from the folder codec/).
[[nodiscard]] std::span<const Codec* const> codecs();
[[nodiscard]] const Codec& codec_named(std::string_view name);  ///< throws Misuse that lists them

/// The coder shared by codecs that send each element in a smaller type.
[[nodiscard]] std::unique_ptr<Coder> casting_coder(Buffer gradient, DType wire_type);

}  // namespace syncopate::compress
