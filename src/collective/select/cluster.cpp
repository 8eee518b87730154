// Clusters: parses links and measured costs from JSON, and computes the costs that a group uses.
#include "syncopate/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "base/json.hpp"
#include "base/named.hpp"
#include "collective/select/select.hpp"
#include "syncopate/error.hpp"

namespace syncopate {

namespace {

using base::JsonPlace;

constexpr std::string_view kMemories[] = {"own", "group"};

LinkCost link_of(const JsonPlace& place) {
  place.refuse_misspelt({"alpha_s", "beta_s_per_byte", "gamma_s_per_byte"});
  return {.alpha_s = place.at("alpha_s").amount(),
          .beta_s_per_byte = place.at("beta_s_per_byte").amount(),
          .gamma_s_per_byte = place.amount_or("gamma_s_per_byte", 0)};
}

std::vector<std::pair<double, double>> table_of(const JsonPlace& place) {
  std::vector<std::pair<double, double>> table;
  if (place.size() == 0) place.refuse("is empty; allowed: at least one row [bytes, seconds]");
  for (std::size_t i = 0; i < place.size(); ++i) {
    const JsonPlace row = place.at(i);
    if (row.size() != 2) row.refuse("a row is [bytes, seconds]");
    table.emplace_back(row.at(std::size_t{0}).amount(), row.at(1).amount());
    if (i > 0 && table[i].first <= table[i - 1].first) row.refuse("sizes must ascend");
  }
  return table;
}

/// Runs `poll_callback`; a Misuse that it throws also names the place in the file.
template <class LookUp>
auto found_at(const JsonPlace& place, LookUp poll_callback) {
  try {
    return poll_callback();
  } catch (const Misuse& misuse) {
    place.refuse(misuse.what());
  }
}

bool is_cost(const JsonPlace& place) { return place.has("affine") || place.has("table"); }

void add_cost(Cluster& cluster, MeasuredCost cost, const JsonPlace& place) {
  place.refuse_misspelt({"affine", "table"});
  if (place.has("affine") == place.has("table")) place.refuse("needs either \"affine\" or \"table\"");
  if (place.has("table")) {
    cost.table = table_of(place.at("table"));
  } else {
    const JsonPlace affine = place.at("affine");
    affine.refuse_misspelt({"a_s", "b_s_per_byte"});
    cost.a_s = affine.at("a_s").amount();
    cost.b_s_per_byte = affine.at("b_s_per_byte").amount();
  }
  cluster.costs.push_back(std::move(cost));
}

/// {"allreduce": {"affine": …}} or, one per algorithm, {"allreduce": {"ring": {"table": …}, "mst": …}}.
void add_costs(Cluster& cluster, const JsonPlace& costs) {
  for (const auto& [name, place] : costs.items()) {
    const Collective collective = found_at(place, [&text = name] { return collective_named(text); });
    if (is_cost(place)) {
      add_cost(cluster, {.collective = collective}, place);
      continue;
    }
    for (const auto& [algorithm, entry] : place.items()) {
      if (!entry.is_object()) entry.refuse(R"(is neither "affine" nor "table" nor an algorithm's {"affine": …})");
      static_cast<void>(
          found_at(entry, [&, &text = algorithm] { return &collective::algorithm_named(text, collective); }));
      add_cost(cluster, {.collective = collective, .algorithm = algorithm}, entry);
    }
  }
}

/// {"topk:0.01": {"encode_s_per_byte": 1e-10, "decode_s_per_byte": 2e-11}}.
void add_codecs(Cluster& cluster, const JsonPlace& codecs) {
  for (const auto& [name, place] : codecs.items()) {
    place.refuse_misspelt({"encode_s_per_byte", "decode_s_per_byte"});
    cluster.codecs.push_back({.codec = name,
                              .encode_s_per_byte = place.at("encode_s_per_byte").amount(),
                              .decode_s_per_byte = place.at("decode_s_per_byte").amount()});
  }
}

}  // namespace

std::string_view name_of(Memory memory) noexcept { return kMemories[static_cast<int>(memory)]; }
Memory memory_named(std::string_view name) { return base::value_named<Memory>("memory", name, kMemories); }

Cluster parse_cluster(std::string_view json, const std::string& file) {
  const nlohmann::json document = base::json_of(json, file);
  const JsonPlace root(document, file);
  if (root.has("layers"))
    root.refuse("this is a profile (`syncopate profile`); allowed: a cluster file (`syncopate fit`)");
  root.refuse_misspelt({"ranks", "ranks_per_host", "transport", "memory", "algorithm", "links", "links_worst_error",
                        "links_median_error", "cpu_s_per_byte", "costs", "codecs"});
  Cluster cluster;
  cluster.ranks = static_cast<int>(std::min<std::uint64_t>(root.at("ranks").count(1), INT_MAX));
  if (root.has("ranks_per_host"))
    cluster.ranks_per_host = static_cast<int>(std::min<std::uint64_t>(root.at("ranks_per_host").count(1), INT_MAX));
  if (root.has("links")) {
    const JsonPlace links = root.at("links");
    links.refuse_misspelt({"inter", "intra"});
    if (links.has("inter")) cluster.inter = link_of(links.at("inter"));
    if (links.has("intra")) cluster.intra = link_of(links.at("intra"));
    if (!cluster.inter && !cluster.intra) links.refuse(R"(has neither "inter" nor "intra": one is needed)");
  }
  if (root.has("transport")) cluster.transport = root.at("transport").text();
  if (root.has("memory")) {
    const JsonPlace memory = root.at("memory");
    cluster.memory = found_at(memory, [&] { return memory_named(memory.text()); });
  }
  if (root.has("algorithm")) cluster.algorithm = root.at("algorithm").text();
  cluster.cpu_s_per_byte = root.amount_or("cpu_s_per_byte", 0);
  cluster.links_worst_error = root.amount_or("links_worst_error", 0);
  if (root.has("costs")) add_costs(cluster, root.at("costs"));
  if (root.has("codecs")) add_codecs(cluster, root.at("codecs"));
  if (!root.has("links") && cluster.costs.empty()) root.refuse(R"(has neither "links" nor "costs": one is needed)");
  return cluster;
}

Cluster read_cluster(const std::string& file) { return parse_cluster(base::text_of_file(file), file); }

std::string warning_about_links(const Cluster& cluster, int ranks) {
  const bool goes_by_links = ranks != cluster.ranks || cluster.costs.empty();
  if (!goes_by_links || cluster.links_worst_error <= kTolerableLinkError) return {};
  return fmt::format(
      "on {} ranks costs come from the cluster's links, which differ from the measurements on {} ranks by up to {:.0f} "
      "%; `syncopate fit` on {} ranks measures tables instead",
      ranks, cluster.ranks, 100 * cluster.links_worst_error, ranks);
}

NetworkCost usual_cost(std::string_view transport, Memory memory) {
  // kMemory: measured with `syncopate fit --transport shm --memory own`. A waiting rank notices a word within a
  // microsecond, and a byte is copied into and out of a slot in the cache. kVectors: in the group's memory a byte is
  // read where it lies, while it is added. Its values are fitted to the measured crossover points: on 4 ranks exchange
  // algorithms overtake recursive_doubling between 8 and 16 KiB, and pairwise_exchange overtakes those at 32 KiB.
  constexpr LinkCost kMemory{1e-6, 0.15e-9, 0.02e-9, Medium::memory}, kVectors{1e-6, 0.1e-9, 0.15e-9, Medium::vectors};
  if (transport.empty() || transport == "tcp") return {};
  return {LinkCost(), memory == Memory::own || transport != "shm" ? kMemory : kVectors};
}

NetworkCost cost_of(const Cluster& cluster, std::string_view transport, Memory memory) {
  NetworkCost cost = usual_cost(transport, memory);
  if (cluster.inter) cost.inter = *cluster.inter;
  const bool holds = cluster.transport.empty() || (transport == cluster.transport && memory == cluster.memory);
  if (!holds) return cost;
  if (cluster.intra) {
    const Medium medium = cost.intra.medium;
    cost.intra = *cluster.intra;
    cost.intra.medium = medium;
  }
  cost.measured = cluster.costs;
  cost.measured_ranks = cluster.ranks;
  cost.measured_ranks_per_host = cluster.ranks_per_host;
  return cost;
}

NetworkCost cost_of(const Cluster& cluster) { return cost_of(cluster, cluster.transport, cluster.memory); }

}  // namespace syncopate
