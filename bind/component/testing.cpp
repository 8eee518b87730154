// The checks of components' laws, for the module syncopate.testing.
#include "syncopate/testing.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <deque>
#include <vector>

#include "codec.hpp"
#include "component/consistency.hpp"
#include "component/placement.hpp"
#include "component/policy.hpp"
#include "component/storage.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

/// A check reports what a component raises as a broken law, except a KeyboardInterrupt and the like.
template <class Check>
std::optional<BrokenLaw> checked(Check&& check) {
  const Interruption interruption;
  std::optional<BrokenLaw> broken = check();
  interruption.raise();
  return broken;
}

void bind_broken(nb::module_& module) {
  nb::class_<BrokenLaw>(module, "BrokenLaw", "The law that a component broke, and the case that shows it.")
      .def_ro("law", &BrokenLaw::law, "One of those that the check's comment quotes.")
      .def_ro("text", &BrokenLaw::text, "A sentence with the component, the case, the values and the law.")
      .def_ro("seed", &BrokenLaw::seed, "Seed of the case: the same call with this seed finds it again.")
      .def_ro("worker", &BrokenLaw::worker, "Worker of a consistency model's history.")
      .def_ro("step", &BrokenLaw::step, "Step of this worker.")
      .def("__str__", [](const BrokenLaw& self) { return self.text; })
      .def("__repr__", [](const BrokenLaw& self) { return "BrokenLaw(" + self.text + ")"; });
}

void bind_server_checks(nb::module_& module) {
  const ConsistencyCheck history;
  module.def(
      "check_consistency",
      [](const PythonConsistency& model, const std::string& parameter, std::optional<std::int64_t> bound,
         std::uint64_t seed, std::uint64_t histories, std::int64_t steps, std::size_t most_workers,
         std::size_t most_servers) {
        return checked([&] {
          return check_consistency(model, {.parameter = parameter,
                                           .bound = bound,
                                           .seed = seed,
                                           .histories = histories,
                                           .steps = steps,
                                           .most_workers = most_workers,
                                           .most_servers = most_servers});
        });
      },
      "model"_a, nb::kw_only(), "parameter"_a = "", "bound"_a = nb::none(), "seed"_a = history.seed,
      "histories"_a = history.histories, "steps"_a = history.steps, "most_workers"_a = history.most_workers,
      "most_servers"_a = history.most_servers,
      "Run jobs of a parameter server in virtual time, with drawn numbers of workers and servers, speeds and delays. "
      "Laws: \"bounded staleness\": a step computes with all updates of every worker's first step - bound steps; "
      "\"read my writes\": and with all of its worker's own; \"no deadlock\"; \"equal decisions\": the same history "
      "runs equally again; \"no exception\". parameter: the text after the colon of its name. Return the first broken "
      "law, or None.");
  const PlacementCheck demand;
  module.def(
      "check_placement",
      [](const PythonPlacement& placement, std::uint64_t seed, std::uint64_t cases, std::size_t most_tables,
         std::size_t most_servers) {
        return checked([&] {
          return check_placement(
              placement, {.seed = seed, .cases = cases, .most_tables = most_tables, .most_servers = most_servers});
        });
      },
      "placement"_a, nb::kw_only(), "seed"_a = demand.seed, "cases"_a = demand.cases,
      "most_tables"_a = demand.most_tables, "most_servers"_a = demand.most_servers,
      "Place drawn tables on drawn numbers of servers. Laws: \"every byte once\", cut at the grain; \"maximum load\": "
      "no server keeps more than most_bytes; \"equal shards\": a second call returns the same; \"no exception\". "
      "Return the first broken law, or None.");
}

void bind_storage_check(nb::module_& module) {
  const StorageCheck job;
  module.def(
      "check_storage",
      [](const PythonStorage& storage, const std::string& parameter, std::uint64_t seed, std::uint64_t cases,
         std::int64_t steps, std::size_t most_workers, std::size_t most_elements, const nb::object& memory) {
        std::vector<nb::object> objects;
        std::deque<std::vector<float>> arrays;
        StorageCheck with{.parameter = parameter,
                          .seed = seed,
                          .cases = cases,
                          .steps = steps,
                          .most_workers = most_workers,
                          .most_elements = most_elements};
        with.memory = [&](std::size_t elements) -> Buffer {
          if (!storage.loads_objects()) return std::span(arrays.emplace_back(elements));
          const nb::object made =
              memory.is_none() ? nb::module_::import_("numpy").attr("zeros")(elements, "float32") : memory(elements);
          objects.push_back(made);
          return {made.ptr(), elements, DType::u8};
        };
        return checked([&] { return check_storage(storage, with); });
      },
      "storage"_a, nb::kw_only(), "parameter"_a = "", "seed"_a = job.seed, "cases"_a = job.cases, "steps"_a = job.steps,
      "most_workers"_a = job.most_workers, "most_elements"_a = job.most_elements, "memory"_a = nb::none(),
      "Run jobs of a parameter server with drawn numbers of workers and elements, under bsp and ssp:1, with and "
      "without a codec. Laws: \"equal weights\": all workers end with the same bits; \"equal bits\": and with them "
      "again; \"nothing remembered\": a replica that joins halfway ends with its server's state; \"equal memory\": "
      "`load` returns what `store` wrote; \"no deadlock\"; \"no exception\". memory(elements): what `load` and "
      "`store` understand; by default an array of NumPy. Return the first broken law, or None.");
}

void bind_gradient_checks(nb::module_& module) {
  const PolicyCheck timeline;
  module.def(
      "check_policy",
      [](const PythonPolicy& policy, std::uint64_t seed, std::uint64_t cases, std::size_t most_layers) {
        return checked(
            [&] { return check_policy(policy, {.seed = seed, .cases = cases, .most_layers = most_layers}); });
      },
      "policy"_a, nb::kw_only(), "seed"_a = timeline.seed, "cases"_a = timeline.cases,
      "most_layers"_a = timeline.most_layers,
      "Partition drawn timelines. Laws: \"every gradient once\": each is in exactly one bucket, the last layer's "
      "first; \"equal buckets\": a second call returns the same; \"no exception\". Return the first broken law, or "
      "None.");
  const CodecCheck gradients;
  module.def(
      "check_codec",
      [](const PythonCodec& codec, const std::string& parameter, std::uint64_t seed, std::uint64_t cases,
         int most_ranks, std::size_t most_elements) {
        return checked([&] {
          return check_codec(codec, {.parameter = parameter,
                                     .seed = seed,
                                     .cases = cases,
                                     .most_ranks = most_ranks,
                                     .most_elements = most_elements});
        });
      },
      "codec"_a, nb::kw_only(), "parameter"_a = "", "seed"_a = gradients.seed, "cases"_a = gradients.cases,
      "most_ranks"_a = gradients.most_ranks, "most_elements"_a = gradients.most_elements,
      "Code drawn gradients for three steps on drawn numbers of ranks, with residual feedback if it is sound. Laws: "
      "\"equal bits\": after a step every rank holds the same; \"equal rounds\": ranks combine alike, and a payload is "
      "within wire_bytes; \"nothing lost\": the residual is what was not sent; \"equal steps\": the same case codes "
      "equally again; \"no exception\". Return the first broken law, or None.");
}

}  // namespace

void bind_testing(nb::module_& module) {
  bind_broken(module);
  bind_server_checks(module);
  bind_storage_check(module);
  bind_gradient_checks(module);
}

}  // namespace syncopate::bind
