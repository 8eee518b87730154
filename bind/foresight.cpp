// Plans, simulations and the catalogue for Python, as rows with the keys of the command line's.
#include "syncopate/foresight.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "signals.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"
#include "syncopate/tooling/shelves.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

using Texts = std::vector<std::string>;
/// Rows, and warnings.
using RowsAndWarnings = std::pair<nb::list, Texts>;

nb::dict row_of(const Prediction& prediction, const Cluster& cluster, const ExchangeChoice& choice) {
  nb::dict row;
  row["policy"] = prediction.policy;
  row["groups"] = nb::tuple(nb::cast(groups_of(prediction)));
  row["iteration_s"] = prediction.iteration_s;
  row["compute_s"] = prediction.compute_s;
  row["exposed_s"] = prediction.exposed_s;
  row["over_optimum"] = prediction.over_optimum;
  row["best_change"] = prediction.best_change;
  row["with_merging_s"] = prediction.with_merging_s;
  row["with_bandwidth_s"] = prediction.with_bandwidth_s;
  row["with_latency_s"] = prediction.with_latency_s;
  row["codec"] = choice.codec;
  row["exchange"] = choice.exchange;
  row["ranks"] = cluster.ranks;
  row["ddp_caps"] = ddp_caps(prediction);
  return row;
}

nb::dict row_of(const Simulation& simulation) {
  nb::dict row;
  row["policy"] = simulation.policy;
  row["ranks"] = simulation.ranks;
  row["algorithm"] = simulation.algorithm;
  row["iteration_s"] = simulation.iteration_s;
  row["compute_s"] = simulation.compute_s;
  row["exposed_s"] = simulation.exposed_s;
  row["speedup"] = simulation.speedup;
  row["efficiency"] = simulation.speedup / simulation.ranks;
  return row;
}

RowsAndWarnings compared(const Profile& profile, const Cluster& cluster, const Texts& policies,
                         const std::string& codec, const std::string& exchange,
                         const std::optional<std::string>& algorithm, std::optional<int> ranks) {
  const CompareOptions options{.policies = policies,
                               .exchange = {.codec = codec, .exchange = exchange},
                               .algorithm = algorithm.value_or(""),
                               .ranks = ranks};
  const ComparedPolicies found = Signals().without_gil([&] { return compare_policies(profile, cluster, options); });
  nb::list rows;
  for (const Prediction& prediction : found.predictions)
    rows.append(row_of(prediction, found.cluster, options.exchange));
  return {rows, found.warnings};
}

/// Signals are handled before each row.
RowsAndWarnings simulated(const Profile& profile, const Cluster& cluster, SimulateOptions options,
                          const ExchangeChoice& choice) {
  Signals signals;
  options.progress = [&signals](std::string_view, int) { signals.look(); };
  nb::list rows;
  if (choice.exchange == kParameterServer) {
    const auto found = signals.without_gil(
        [&] { return simulate_server_exchange(profile, cluster, options, {}, choice.codec, "none"); });
    for (const ServerSimulation& row : found.rows) rows.append(row_of(row.training));
    return {rows, found.warnings};
  }
  const auto found = signals.without_gil([&] { return simulate_exchange(profile, cluster, options, choice); });
  for (const Simulation& row : found.rows) rows.append(row_of(row));
  return {rows, found.warnings};
}

nb::dict priced(PlanRequest request) {
  const auto price = Signals().without_gil([&] {
    const std::string flaw = verify_plans(request);
    if (!flaw.empty()) throw Corrupt("the plan of " + request.algorithm + " is wrong: " + flaw);
    return price_plans(request);
  });
  if (request.collective == Collective::barrier) request.bytes = kBarrierBytes;
  nb::dict row;
  row["algorithm"] = price.algorithm;
  row["collective"] = name_of(request.collective);
  row["ranks"] = request.ranks;
  row["bytes"] = request.bytes;
  row["rounds"] = price.rounds;
  row["wire_bytes_per_rank"] = price.wire_bytes_per_rank;
  row["predicted_s"] = price.predicted_s;
  return row;
}

nb::list catalogue_rows(const std::string& name) {
  nb::list rows;
  for (const ShelfEntry& entry : entries_named(name, shelf_entries())) {
    nb::dict row;
    row["shelf"] = entry.shelf;
    row["name"] = entry.name;
    row["summary"] = entry.summary;
    row["source"] = entry.source;
    rows.append(row);
  }
  return rows;
}

void bind_files(nb::module_& module) {
  nb::class_<Profile>(module, "ProfileFile", "A profile as the library has read it.")
      .def_static("read", &read_profile, "path"_a)
      .def_static("parse", &parse_profile, "text"_a, "file"_a);
  nb::class_<Cluster>(module, "ClusterFile", "A cluster file as the library has read it.")
      .def_static("read", &read_cluster, "path"_a)
      .def_static("parse", &parse_cluster, "text"_a, "file"_a);
}

}  // namespace

void bind_foresight(nb::module_& module) {
  bind_files(module);
  module.def("compare_policies", compared, "profile"_a, "cluster"_a, nb::kw_only(), "policies"_a, "codec"_a,
             "exchange"_a, "algorithm"_a.none(), "ranks"_a.none(), "Rows of `syncopate plan`, and warnings.");
  module.def(
      "simulate",
      [](const Profile& profile, const Cluster& cluster, std::vector<int> ranks, Texts policies,
         const std::string& codec, const std::string& exchange, double noise, int steps, std::uint64_t seed) {
        return simulated(
            profile, cluster,
            {.policies = std::move(policies), .ranks = std::move(ranks), .noise = noise, .steps = steps, .seed = seed},
            {.codec = codec, .exchange = exchange});
      },
      "profile"_a, "cluster"_a, nb::kw_only(), "ranks"_a, "policies"_a, "codec"_a, "exchange"_a, "noise"_a,
      "steps"_a = SimulateOptions().steps, "seed"_a = SimulateOptions().seed,
      "Rows of `syncopate simulate`, and warnings.");
  module.def(
      "price_collective",
      [](const std::string& algorithm, const std::string& collective, int ranks, std::uint64_t bytes,
         std::uint32_t ranks_per_host) {
        return priced({.collective = collective_named(collective),
                       .algorithm = algorithm,
                       .ranks = ranks,
                       .bytes = bytes,
                       .ranks_per_host = ranks_per_host});
      },
      "algorithm"_a, nb::kw_only(), "collective"_a, "ranks"_a, "bytes"_a, "ranks_per_host"_a = 0,
      "The row of `syncopate plan collective`.");
  module.def("catalogue_rows", catalogue_rows, "name"_a = "", "Rows of `syncopate info`, without its commands.");
}

}  // namespace syncopate::bind
