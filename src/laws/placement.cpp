// The laws of a placement, for drawn tables and servers.
#include "server/placement.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/require.hpp"
#include "laws/cases.hpp"

namespace syncopate {

namespace {

std::optional<BrokenLaw> broken_by_shards(const server::Placement& placement, const server::Demand& demand) {
  const auto shards = placement.place(demand);
  const auto broken = [&](std::string law, const std::string& text) -> BrokenLaw {
    return {.law = std::move(law),
            .text = fmt::format("{} (tables of {} bytes, {} servers, grain {})", text,
                                fmt::join(demand.table_bytes, ", "), demand.servers, demand.grain_bytes)};
  };
  if (const std::string flaw = server::misplaced(shards, demand); !flaw.empty()) return broken("every byte once", flaw);
  if (placement.place(demand) != shards) return broken("equal shards", "a second call returns other shards");
  const auto loads = server::loads_of(shards, demand.servers);
  const auto fullest = std::ranges::max_element(loads);
  const double most = placement.most_bytes(demand);
  // A quotient in `most_bytes` is rounded.
  if (static_cast<double>(*fullest) <= most * (1 + 1e-12)) return std::nullopt;
  return broken("maximum load",
                fmt::format("server {} keeps {} bytes; promised: at most {}", fullest - loads.begin(), *fullest, most));
}

}  // namespace

std::optional<BrokenLaw> check_placement(const server::Placement& placement, const PlacementCheck& with) {
  base::require(placement.place != nullptr && placement.most_bytes != nullptr,
                "placement {} lacks a function; allowed: with place and most_bytes", placement.name);
  base::require(with.most_servers >= 1, "at most {} servers; allowed: at least 1", with.most_servers);
  return laws::first_broken(fmt::format("placement {}", placement.name), with.seed, with.cases,
                            [&](std::uint64_t seed) {
                              const base::CounterRandom random{seed};
                              std::uint64_t counter = 0;
                              const auto below = [&](std::size_t limit) -> std::size_t {
                                return random.below(static_cast<std::uint32_t>(limit), counter++);
                              };
                              const std::size_t servers = 1 + below(with.most_servers), grain = 1 + below(8);
                              std::vector<std::size_t> tables(below(with.most_tables + 1));
                              for (std::size_t& bytes : tables) bytes = grain * below(1000);
                              return broken_by_shards(placement, {tables, servers, grain});
                            });
}

}  // namespace syncopate
