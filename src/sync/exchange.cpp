// Exchanges by name, and which codecs and algorithms fit them.
#include "sync/exchange.hpp"

#include "base/named.hpp"
#include "base/require.hpp"
#include "collective/algorithm.hpp"
#include "collective/group/access.hpp"

namespace syncopate {

namespace sync {

namespace {

bool offers(std::string_view algorithm, Collective collective) {
  const auto entries = collective::algorithms();
  const auto found = std::ranges::find(entries, algorithm, [](auto* entry) { return entry->name; });
  return found != entries.end() && (*found)->offers(collective);
}

/// Why an exchange does not fit a codec.
std::string_view reason_against(const Exchange& exchange, const compress::Codec& codec) {
  if (!exchange.codes) return "every rank updates its shard from uncoded gradients";
  if (!exchange.serves.includes(codec.combines)) return "it has no rounds in which ranks sum parts of packets";
  return "only rank 0 gets answers, and the codec has several rounds";
}

}  // namespace

const Exchange& exchange_named(std::string_view name) { return base::entry_named("exchange", name, exchanges()); }

Updater Exchange::updater() const noexcept {
  if (const auto* broadcasts = std::get_if<BroadcastsWeights>(&ending)) return broadcasts->updater;
  return std::holds_alternative<GathersWeights>(ending) ? Updater::shards : Updater::caller;
}

void require_fit(const Exchange& exchange, const compress::Codec& codec, std::string_view algorithm,
                 const Catalogue& catalogue) {
  const auto fits = [&](const compress::Codec& entry) {
    return exchange.serves.includes(entry.combines) && (exchange.answers_everywhere || entry.one_round) &&
           (exchange.codes || entry.name == "none");
  };
  if (!fits(codec)) {
    std::vector<std::string> names;
    for (const compress::Codec* entry : catalogue.codecs())
      if (fits(*entry)) names.push_back(fmt::format("'{}'", entry->name));
    throw Misuse(fmt::format("exchange {} does not work with codec {}: {}; allowed: codec {}{}", exchange.name,
                             codec.name, reason_against(exchange, codec), fmt::join(names, ", "),
                             names.size() == 1 ? " only" : ""));
  }
  if (algorithm == "auto") return;
  for (const Collective collective : exchange.collectives)
    static_cast<void>(collective::algorithm_named(algorithm, collective));
}

RowShare share_of(const Exchange& exchange, Group& group) {
  return exchange.share == nullptr ? RowShare{.rank = group.rank(), .ranks = group.size()} : exchange.share(group);
}

void run(Group& group, Collective collective, Buffer data, CollectiveOptions options) {
  GroupAccess::run(group, collective::group::request_in_place(collective, data, std::move(options)));
}

std::string_view algorithm_for(Collective collective, std::string_view algorithm) {
  return offers(algorithm, collective) ? algorithm : "auto";
}

}  // namespace sync

Updater updater_of(std::string_view exchange) { return sync::exchange_named(exchange).updater(); }

}  // namespace syncopate
