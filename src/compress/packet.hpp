// Packet: an encoded bucket, ready for an exchange.
#pragma once

#include <cstdint>

#include "syncopate/dtype.hpp"

namespace syncopate::compress {

/// How packets of several ranks become one. The exchange must offer what the codec needs.
enum class Combine : std::uint8_t {
  additive,   ///< element by element, by any reducing collective
  mergeable,  ///< pairwise, by a merge of the codec's own
  gather,     ///< not at all: every rank decodes every rank's packet
};

struct Packet {
  Buffer payload;
};

}  // namespace syncopate::compress
