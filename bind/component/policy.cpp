// The class Policy of the Python package: a descriptor whose partition calls Python.
#include "component/policy.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "syncopate/catalogue.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using schedule::Layer;
using schedule::Needs;
using schedule::Partition;
using schedule::PolicyOptions;
using schedule::Timeline;

constexpr const char* kDoc =
    "A merge policy of your own: it decides which gradients share a bucket. Every rank has an equal one: pass it as "
    "`policy`, or in `catalogue` with its name.\n\n"
    "partition(layers, step): the buckets (first, last), both inclusive, in the order of exchange: the last layer's "
    "bucket comes first, and every layer is in exactly one. layers: PolicyLayers in the order of the forward pass; "
    "step: a PolicyStep. It runs when the Synchronizer is created, and with needs=\"times\" again when it has "
    "measured.\n"
    "needs: \"sizes\", or \"times\": the layers' times and the cost of an exchange.\n\n"
    "Raises Misuse for a name that is not made of a-z, 0-9 and _. An exception of `partition` is raised by the call "
    "that needs it.";

/// PolicyOptions, and the time of the forward pass.
struct PolicyStep {
  PolicyOptions options;
  double forward_s = 0;

  /// Throws Misuse if the cost is not known.
  [[nodiscard]] double exchange_s(double bytes) const {
    if (options.cost) return (*options.cost)(bytes);
    throw Misuse("the cost of an exchange is not known; allowed: in a policy with needs=\"times\"");
  }
};

Partition partition(const void* self, const Timeline& timeline, const PolicyOptions& options) {
  const auto& policy = *static_cast<const PythonPolicy*>(self);
  if (policy.needs == Needs::times) static_cast<void>(schedule::required_cost(policy.name, timeline, options));
  return with_gil(policy.who(), [&] {
    nb::list layers;
    for (const Layer& layer : timeline.layers) layers.append(layer);
    const nb::list returned(policy.functions()[0](layers, PolicyStep{options, timeline.forward_s}));
    Partition buckets;
    for (const nb::handle each : returned) {
      const auto [first, last] = value_of<std::tuple<std::size_t, std::size_t>>(
          policy, "a bucket", nb::borrow(each), "(first, last), whole numbers of at least 0");
      buckets.push_back({first, last});
    }
    return buckets;
  });
}

Needs needs_named(const std::string& name) {
  if (name == "sizes") return Needs::sizes;
  if (name == "times") return Needs::times;
  throw Misuse(fmt::format("needs '{}' of a policy; allowed: sizes, times", name));
}

void bind_inputs(nb::module_& module) {
  nb::class_<Layer>(module, "PolicyLayer", "A gradient, for a policy.")
      .def_ro("name", &Layer::name)
      .def_ro("bytes", &Layer::bytes)
      .def_ro("backward_s", &Layer::backward_s, "Seconds of its backward pass; 0: not measured.");
  nb::class_<PolicyStep>(module, "PolicyStep", "The step that a policy divides into buckets.")
      .def_prop_ro("ranks", [](const PolicyStep& self) { return self.options.ranks; })
      .def_prop_ro(
          "fusion_bytes", [](const PolicyStep& self) { return self.options.fusion_bytes; },
          "The caller's size of a bucket; 0: not given.")
      .def_ro("forward_s", &PolicyStep::forward_s, "Seconds of the forward pass; 0: not measured.")
      .def("exchange_s", &PolicyStep::exchange_s, "bytes"_a,
           "Seconds for which an exchange of that size occupies the channel. Raises Misuse if that is not known.");
}

}  // namespace

PythonPolicy::PythonPolicy(std::string own_name, nb::object function, const std::string& needed)
    : Component("policy", std::move(own_name), {std::move(function)}) {
  static_cast<schedule::Policy&>(*this) = {.name = this->own_name(),
                                           .summary = "a policy of this program",
                                           .source = "Python",
                                           .partition = {bind::partition, this},
                                           .needs = needs_named(needed)};
  static_cast<void>(Catalogue().with(*this));  // its name
}

void bind_policy(nb::module_& module) {
  bind_inputs(module);
  nb::class_<PythonPolicy>(module, "Policy", nb::type_slots(component_slots<PythonPolicy>), nb::is_weak_referenceable(),
                           kDoc)
      .def(
          "__init__",
          [](PythonPolicy* self, const std::string& name, const nb::callable& partition, const std::string& needs) {
            new (self) PythonPolicy(name, partition, needs);
          },
          "name"_a, "partition"_a, nb::kw_only(), "needs"_a = "sizes",
          nb::sig("def __init__(self, name: str, partition: collections.abc.Callable[[list[PolicyLayer], PolicyStep], "
                  "collections.abc.Iterable[tuple[int, int]]], *, needs: str = 'sizes') -> None"))
      .def_prop_ro("name", &PythonPolicy::own_name)
      .def("__repr__", [](const PythonPolicy& self) { return "Policy('" + self.own_name() + "')"; });
}

}  // namespace syncopate::bind
