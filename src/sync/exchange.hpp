// Exchange: one entry of the shelf exchange/: how the packets of all ranks become one result.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compress/packet.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// The rank that updates where only one does, and whose weights the others get.
inline constexpr int kRoot = 0;

struct ExchangeOptions {
  std::string algorithm = "auto";  ///< of the collectives it uses
  std::string name;                ///< the bucket, for error messages
};

/// It ends in one of two values: a combined gradient (`updater` is the caller), or updated weights.
struct Exchange {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  Updater updater = Updater::caller;
  bool (*accepts)(compress::Combine combine);
  /// Averages `packet` over the group, in place, on every rank that updates; unspecified on the others.
  void (*combine)(Group& group, const compress::Packet& packet, const ExchangeOptions& options);
  /// Brings the root's `weights` to every rank; null where it ends in gradients.
  void (*spread)(Group& group, Buffer weights, const ExchangeOptions& options) = nullptr;
  /// Weights are spread in every step; otherwise in every `SynchronizerOptions::broadcast_every`-th.
  bool spreads_always = true;
};

/// Every exchange, by name (generated from the folder exchange/).
[[nodiscard]] std::span<const Exchange* const> exchanges();
[[nodiscard]] const Exchange& exchange_named(std::string_view name);  ///< throws Misuse that lists them

/// An operation of the group on the communication thread. It does not stay awake while it waits: the backward pass
/// needs the core.
void carry_out(Group& group, Collective collective, Buffer data, const CollectiveOptions& options);

}  // namespace syncopate::sync
