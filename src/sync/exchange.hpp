// Exchange: one entry of the shelf exchange/: how the packets of all ranks become one result.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compress/packet.hpp"
#include "syncopate/group.hpp"

namespace syncopate::sync {

/// What an exchange leaves behind.
enum class Outcome : std::uint8_t {
  gradient,  ///< the combined gradient: an optimizer has yet to apply it
  weights,   ///< updated weights: the exchange has applied it
};

struct ExchangeOptions {
  std::string algorithm = "auto";  ///< of the collectives it uses
  std::string name;                ///< the bucket, for error messages
};

struct Exchange {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool (*accepts)(compress::Combine combine);
  /// Averages `packet` over the group, in place.
  Outcome (*combine)(Group& group, const compress::Packet& packet, const ExchangeOptions& options);
};

/// Every exchange, by name (generated from the folder exchange/).
[[nodiscard]] std::span<const Exchange* const> exchanges();
[[nodiscard]] const Exchange& exchange_named(std::string_view name);  ///< throws Misuse that lists them

}  // namespace syncopate::sync
