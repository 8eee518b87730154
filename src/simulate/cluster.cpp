// Clusters: links and measured costs, from JSON.
#include <climits>

#include "simulate/json.hpp"
#include "syncopate/predict.hpp"

namespace syncopate {

namespace {

using simulate::JsonPlace;

LinkCost link_of(const JsonPlace& place) {
  return {.alpha_s = place.at("alpha_s").amount(),
          .beta_s_per_byte = place.at("beta_s_per_byte").amount(),
          .gamma_s_per_byte = place.amount_or("gamma_s_per_byte", 0)};
}

std::vector<std::pair<double, double>> table_of(const JsonPlace& place) {
  std::vector<std::pair<double, double>> table;
  if (place.size() == 0) place.refuse("is empty; a table has one row [bytes, seconds] at least");
  for (std::size_t i = 0; i < place.size(); ++i) {
    const JsonPlace row = place.at(i);
    if (row.size() != 2) row.refuse("a row is [bytes, seconds]");
    table.emplace_back(row.at(std::size_t{0}).amount(), row.at(1).amount());
    if (i > 0 && table[i].first <= table[i - 1].first) row.refuse("sizes must ascend");
  }
  return table;
}

bool is_cost(const JsonPlace& place) { return place.has("affine") || place.has("table"); }

void add_cost(Cluster& cluster, MeasuredCost cost, const JsonPlace& place) {
  if (place.has("affine") == place.has("table")) place.refuse("needs either \"affine\" or \"table\"");
  if (place.has("table")) {
    cost.table = table_of(place.at("table"));
  } else {
    cost.a_s = place.at("affine").at("a_s").amount();
    cost.b_s_per_byte = place.at("affine").at("b_s_per_byte").amount();
  }
  cluster.costs.push_back(std::move(cost));
}

/// {"allreduce": {"affine": …}} or, one per algorithm, {"allreduce": {"ring": {"table": …}, "mst": …}}.
void add_costs(Cluster& cluster, const JsonPlace& costs) {
  for (const auto& [name, place] : costs.items()) {
    const Collective collective = collective_named(name);
    if (is_cost(place)) {
      add_cost(cluster, {.collective = collective}, place);
      continue;
    }
    for (const auto& [algorithm, entry] : place.items()) {
      if (!entry.is_object()) entry.refuse(R"(is neither "affine" nor "table" nor an algorithm's {"affine": …})");
      add_cost(cluster, {.collective = collective, .algorithm = algorithm}, entry);
    }
  }
}

}  // namespace

Cluster parse_cluster(std::string_view json, const std::string& file) {
  const nlohmann::json document = simulate::json_of(json, file);
  const JsonPlace root(document, file);
  Cluster cluster;
  cluster.ranks = static_cast<int>(std::min<std::uint64_t>(root.at("ranks").count(1), INT_MAX));
  if (root.has("ranks_per_host"))
    cluster.ranks_per_host = static_cast<int>(std::min<std::uint64_t>(root.at("ranks_per_host").count(1), INT_MAX));
  if (root.has("links")) {
    const JsonPlace links = root.at("links");
    cluster.inter = link_of(links.at("inter"));
    if (links.has("intra")) cluster.intra = link_of(links.at("intra"));
  }
  if (root.has("algorithm")) cluster.algorithm = root.at("algorithm").text();
  cluster.cpu_s_per_byte = root.amount_or("cpu_s_per_byte", 0);
  if (root.has("costs")) add_costs(cluster, root.at("costs"));
  if (!cluster.inter && cluster.costs.empty()) root.refuse(R"(has neither "links" nor "costs": one is needed)");
  return cluster;
}

Cluster read_cluster(const std::string& file) { return parse_cluster(simulate::text_of_file(file), file); }

}  // namespace syncopate
