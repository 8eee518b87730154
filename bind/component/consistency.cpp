// The class Consistency of the Python package: a descriptor whose rule asks an object of Python.
#include "component/consistency.hpp"

#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "signals.hpp"
#include "syncopate/catalogue.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using server::Clock;
using server::ClockView;
using server::Pace;
using server::Rule;

constexpr const char* kDoc =
    "A consistency model of your own: the age of the weights that a worker may compute with. Every worker and server "
    "has an equal one: pass it as `consistency`, or in `catalogue` with consistency=\"NAME:NUMBERS\", and to "
    "Server.start in `catalogue`.\n\n"
    "model(*numbers): a class, or a function, that returns an object with\n"
    "- staleness: a worker at clock c waits until the servers have all updates of every worker's first c - staleness "
    "steps; None: it does not wait.\n"
    "- travels_early(clocks), if it is there: whether an accumulated update is sent before a worker requires it "
    "(ClockView). A worker calls it.\n"
    "- last_step(server), if it is there: the last step that the asking worker may compute, if that is beyond the "
    "staleness (ServerView). Servers call it, on their threads.\n"
    "parameters: the numbers after the colon of its name, by default those of the Parameters; they are floats.\n\n"
    "Raises Misuse for a name that is not made of a-z, 0-9 and _. An exception of a worker's function is raised by the "
    "worker's call; on a server it ends the job: Server.wait_for_end raises it, and the workers get RemoteFailure.";

/// server::ServerView, copied for Python.
struct ServerState {
  std::vector<Clock> clocks;
  std::vector<Pace> paces;
  std::size_t worker = 0, table = 0;
  Clock least = 0;
};

const PythonConsistency& own(const void* self) { return *static_cast<const PythonConsistency*>(self); }

std::optional<Clock> staleness_of(const PythonConsistency& model, nb::handle rule) {
  const nb::object staleness = rule.attr("staleness");
  if (staleness.is_none()) return std::nullopt;
  constexpr const char* kAllowed = "a whole number of at least 0, or None";
  const auto steps = value_of<Clock>(model, "staleness", staleness, kAllowed);
  if (steps < 0) throw Misuse(fmt::format("{}: staleness is {}; allowed: {}", model.who(), steps, kAllowed));
  return steps;
}

/// The rule keeps what `model` returned.
Rule rule(const void* self, std::span<const double> numbers) {
  const PythonConsistency& model = own(self);
  return with_gil(model.who(), [&] {
    const nb::object made = model.model()(*nb::tuple(nb::cast(std::vector<double>(numbers.begin(), numbers.end()))));
    Rule rule{.staleness = staleness_of(model, made)};
    if (nb::hasattr(made, "travels_early"))
      rule.travels_early = [&model, hook = held<nb::object>(made.attr("travels_early"))](const ClockView& clocks) {
        return with_gil(model.who(), [&] {
          const int yes = PyObject_IsTrue((*hook)(clocks).ptr());
          if (yes < 0) nb::raise_python_error();
          return yes == 1;
        });
      };
    if (nb::hasattr(made, "last_step"))
      rule.last_step = [&model, hook = held<nb::object>(made.attr("last_step"))](const server::ServerView& view) {
        return with_gil(model.who(), [&] {
          ServerState state{.clocks = {view.clocks.begin(), view.clocks.end()},
                            .paces = {view.paces.begin(), view.paces.end()},
                            .worker = view.worker,
                            .table = view.table,
                            .least = view.least};
          return value_of<Clock>(model, "last_step", (*hook)(std::move(state)), "a whole number");
        });
      };
    return rule;
  });
}

void bind_views(nb::module_& module) {
  nb::class_<ClockView>(module, "ClockView",
                        "A worker's copy of one shard, when the worker decides whether to send. A clock counts steps.")
      .def_ro("own", &ClockView::own, "The worker's clock: the steps that it has ended.")
      .def_ro("fetched", &ClockView::fetched, "Steps of all workers that its copy contains.")
      .def_ro("sent", &ClockView::sent, "Its own steps whose updates the server has.")
      .def_ro("wanted", &ClockView::wanted, "Another worker waits for all updates of the first `wanted` steps.")
      .def_ro("significance", &ClockView::significance, "Size of the accumulated update over the size of the weights.");
  nb::class_<Pace>(module, "Pace", "The pace of a worker's updates of one shard, by its server's clock.")
      .def_ro("pushed_s", &Pace::pushed_s, "When the last update came, since an arbitrary time.")
      .def_ro("step_s", &Pace::step_s, "Seconds per step; 0: not measured.");
  nb::class_<ServerState>(module, "ServerView", "One shard on its server, when the server decides about a worker.")
      .def_ro("clocks", &ServerState::clocks, "The steps whose updates are here, for every worker that takes part.")
      .def_ro("worker", &ServerState::worker, "The asking worker's index in `clocks`.")
      .def_ro("paces", &ServerState::paces, "Paces of the same workers.")
      .def_ro("least", &ServerState::least, "The smallest clock.")
      .def_ro("table", &ServerState::table, "Its index, in the order of creation.");
}

}  // namespace

PythonConsistency::PythonConsistency(std::string own_name, nb::object maker, std::vector<ComponentParameter> numbers)
    : Component("consistency", std::move(own_name), {std::move(maker)}), parameters_(std::move(numbers)) {
  static_cast<server::Consistency&>(*this) = {.name = this->own_name(),
                                              .summary = "a consistency model of this program",
                                              .source = "Python",
                                              .parameter = parameters_.usual(),
                                              .parameters = parameters_.limits(),
                                              .rule = {bind::rule, this}};
  static_cast<void>(Catalogue().with(*this));  // its name and its parameters
}

void bind_consistency(nb::module_& module) {
  bind_views(module);
  nb::class_<PythonConsistency>(module, "Consistency", nb::type_slots(component_slots<PythonConsistency>),
                                nb::is_weak_referenceable(), kDoc)
      .def(
          "__init__",
          [](PythonConsistency* self, const std::string& name, const nb::callable& model,
             const std::vector<ComponentParameter>& parameters) {
            new (self) PythonConsistency(name, model, parameters);
          },
          "name"_a, "model"_a, nb::kw_only(), "parameters"_a = std::vector<ComponentParameter>{},
          nb::sig("def __init__(self, name: str, model: collections.abc.Callable[..., object], *, "
                  "parameters: collections.abc.Sequence[Parameter] = []) -> None"))
      .def_prop_ro("name", &PythonConsistency::own_name)
      .def("__repr__", [](const PythonConsistency& self) { return "Consistency('" + self.own_name() + "')"; });
}

}  // namespace syncopate::bind
