// The law of an exchange with a codec: its collectives, from the rounds that the codec needs for a model's gradients.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compress/codec.hpp"
#include "sync/codec_state.hpp"
#include "sync/exchange.hpp"
#include "syncopate/error.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {

namespace {

using compress::Combine;

/// The ranks among which rounds run, and the part of each gradient that one rank codes.
struct Rounds {
  Scope scope = Scope::group;
  int ranks = 1;
  std::size_t parts = 1;
  int per_host = 1;        ///< of these ranks
  bool everywhere = true;  ///< every rank gets the answers, not only the root
};

compress::Tensor tensor_of(const Gradient& gradient, std::size_t parts = 1) {
  const std::size_t rows = gradient.rows == 0 ? gradient.elements : gradient.rows;
  const std::size_t columns = gradient.elements / rows, mine = (rows + parts - 1) / parts;
  return {.values = Buffer(nullptr, mine * columns, gradient.dtype),
          .rows = mine,
          .columns = columns,
          .density = gradient.density};
}

bool is_coded(const Gradient& gradient, const compress::Settings& settings) {
  return compress::is_coded(settings, tensor_of(gradient));
}

/// Bytes of a gradient in the type that its coder gets.
double coding_bytes(const Gradient& gradient, const compress::Settings& settings) {
  const DType type = compress::coding_type(settings, gradient.dtype, is_coded(gradient, settings));
  return static_cast<double>(gradient.elements * size_of(type));
}

double bytes_of(std::span<const Gradient> gradients) {
  double bytes = 0;
  for (const Gradient& gradient : gradients) bytes += static_cast<double>(gradient.elements * size_of(gradient.dtype));
  return bytes;
}

/// Bytes that coders get per byte of gradients: 1, or up to 2 where they get 16-bit gradients in f32.
double coding_share(std::span<const Gradient> gradients, const compress::Settings& settings) {
  double bytes = 0;
  for (const Gradient& gradient : gradients) bytes += coding_bytes(gradient, settings);
  return gradients.empty() ? 1 : bytes / bytes_of(gradients);
}

/// The payloads that the answers to a round contain.
double payloads_of(const compress::RoundBytes& round, int ranks) {
  if (round.combine != Combine::gather) return 1;
  return round.senders > 0 ? std::min(round.senders, ranks) : ranks;
}

ExchangeLeg leg_of(const compress::RoundBytes& round, const Rounds& rounds, double dense_bytes) {
  const double share = round.bytes / dense_bytes;
  switch (round.combine) {
    case Combine::additive:
      return {Collective::allreduce, rounds.scope, share};
    case Combine::gather:
      return {Collective::allgather_v, rounds.scope, share * payloads_of(round, rounds.ranks)};
    default:
      return {Collective::alltoall_v, rounds.scope, share};
  }
}

/// Before a gather every rank of the group sends three numbers.
constexpr double kOfferBytes = 24;
/// Before a message between two ranks.
constexpr double kLengthBytes = 8;

/// The number of rounds of a binomial tree.
int levels_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks) - 1); }

/// Levels of the tree within hosts and between them, each a length and a packet; then one packet reaches all.
void add_merges(ExchangeLaw& law, double share, const Rounds& rounds) {
  const int hosts = (rounds.ranks + rounds.per_host - 1) / rounds.per_host;
  for (const auto& [levels, scope] : {std::pair(levels_of(std::min(rounds.ranks, rounds.per_host)), Scope::host),
                                      std::pair(levels_of(hosts), Scope::across)}) {
    if (levels == 0) continue;
    law.legs.push_back({.scope = scope, .share = 0, .fixed_bytes = kLengthBytes, .messages = levels});
    law.legs.push_back({.scope = scope, .share = share, .messages = levels});
  }
  if (!rounds.everywhere) return;
  law.legs.push_back({Collective::allgather, Scope::group, 0, kOfferBytes * rounds.ranks});
  law.legs.push_back({Collective::allgather_v, rounds.scope, share});
}

/// Adds the legs of all rounds; returns the number of payloads that the codec decodes at the end of its conversation.
double add_rounds(ExchangeLaw& law, std::span<const Gradient> gradients, const compress::Settings& settings,
                  const Rounds& rounds) {
  std::vector<compress::Tensor> coded, plain;
  for (const Gradient& gradient : gradients) {
    const bool is_one = is_coded(gradient, settings);
    compress::Tensor part = tensor_of(gradient, rounds.parts);
    part.values.dtype = compress::coding_type(settings, gradient.dtype, is_one);
    (is_one ? coded : plain).push_back(part);
  }
  const double dense_bytes = bytes_of(gradients);
  double decoded = 1;
  for (const auto& [tensors, with] : {std::pair(&plain, compress::settings_of("none")), std::pair(&coded, settings)}) {
    if (tensors->empty()) continue;
    for (const compress::RoundBytes& round : rounds_of(with, *tensors)) {
      decoded = payloads_of(round, rounds.ranks);
      if (round.combine == Combine::mergeable) {
        add_merges(law, round.bytes / dense_bytes, rounds);
        continue;
      }
      if (round.combine == Combine::gather)
        law.legs.push_back({Collective::allgather, Scope::group, 0, kOfferBytes * rounds.ranks});
      law.legs.push_back(leg_of(round, rounds, dense_bytes));
    }
  }
  return decoded;
}

bool density_is_known(std::span<const Gradient> gradients, const compress::Settings& settings) {
  const auto is_open = settings.codec->has_open_density;
  return is_open == nullptr || !is_open(settings) || std::ranges::all_of(gradients, [&](const Gradient& gradient) {
           return gradient.density > 0 || !is_coded(gradient, settings);
         });
}

}  // namespace

std::optional<CodingCost> coding_cost(const Cluster& cluster, const std::string& codec, const Catalogue& catalogue) {
  const compress::Settings settings = compress::settings_of(codec, catalogue);
  for (const CodingCost& coding : cluster.codecs) {
    try {
      const compress::Settings known = compress::settings_of(coding.codec, catalogue);
      if (known.codec == settings.codec && known.parameter == settings.parameter) return coding;
    } catch (const Misuse&) {  // a codec that the catalogue does not have
    }
  }
  if (settings.codec->name == "none") return CodingCost{.codec = codec};
  return std::nullopt;
}

ExchangeLaw exchange_law(std::span<const Gradient> gradients, const SynchronizerOptions& options,
                         const Cluster& cluster) {
  const sync::Exchange& exchange = sync::exchange_named(options.exchange);
  const compress::Settings settings = sync::codec_settings(options);
  sync::require_fit(exchange, *settings.codec, options.algorithm, options.catalogue);
  ExchangeLaw law;
  if (options.exchange == "none") return {.legs = {{Collective::allreduce, Scope::group, 0}}};
  const int per_host = std::min(cluster.ranks, cluster.ranks_per_host);
  if (exchange.narrowing && exchange.narrowing->over == Scope::group)
    return {.legs = {{Collective::reduce_scatter, Scope::group}, {Collective::allgather, Scope::group}}};
  const bool narrows = exchange.narrowing.has_value();
  const Rounds rounds{.scope = narrows ? Scope::across : Scope::group,
                      .ranks = narrows ? (cluster.ranks + per_host - 1) / per_host : cluster.ranks,
                      .parts = narrows ? static_cast<std::size_t>(per_host) : 1,
                      .per_host = narrows ? 1 : per_host,
                      .everywhere = exchange.answers_everywhere};
  const double share = coding_share(gradients, settings);
  if (narrows) law.legs.push_back({Collective::reduce_scatter, Scope::host, share});
  const double decoded = add_rounds(law, gradients, settings, rounds);
  for (ExchangeLeg& leg : law.legs)
    if (narrows && leg.scope == Scope::across) leg.at_once = per_host;  // every rank of a host exchanges its part
  if (narrows) law.legs.push_back({Collective::allgather, Scope::host, share});
  if (exchange.updater() == Updater::root)
    for (ExchangeLeg& leg : law.legs)
      if (leg.collective == Collective::allreduce) leg.collective = Collective::reduce;
  if (const auto* ending = std::get_if<sync::BroadcastsWeights>(&exchange.ending))
    law.legs.push_back({Collective::broadcast, Scope::group, ending->always ? 1.0 : 1.0 / options.broadcast_every});
  const std::optional<CodingCost> coding = coding_cost(cluster, options.coding.codec, options.catalogue);
  law.coding_is_known = coding.has_value();
  if (coding)
    law.coding_s_per_byte =
        share * (coding->encode_s_per_byte + decoded * coding->decode_s_per_byte) / static_cast<double>(rounds.parts);
  law.density_is_known = density_is_known(gradients, settings);
  const bool is_plain = settings.codec->name == "none" && options.exchange == "allreduce";
  return is_plain ? ExchangeLaw{} : law;
}

}  // namespace syncopate
