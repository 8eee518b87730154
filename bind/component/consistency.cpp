// The class Consistency of the Python package: a descriptor whose rule asks an object of Python.
#include "component/consistency.hpp"

#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "component/lent.hpp"
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
    "- part(clocks, weights, update, sent), if it is there: copies the elements of `update`, the accumulated one, that "
    "travel early to `sent`, which is 0; they are flat arrays of float32, of the library. The others stay.\n"
    "- sends_unasked(server), if it is there: whether a server sends the worker its new weights without a request.\n"
    "- sees_clocks, if it is there: True: ClockView.clocks has the clocks of all workers.\n"
    "parameters: the numbers after the colon of its name, by default those of the Parameters; they are floats.\n\n"
    "Raises Misuse for a name that is not made of a-z, 0-9 and _. An exception of a worker's function is raised by the "
    "worker's call; on a server it ends the job: Server.wait_for_end raises it, and the workers get RemoteFailure.";

/// server::ClockView, copied for Python.
struct ClockState {
  explicit ClockState(const ClockView& of) : view(of), clocks(of.clocks.begin(), of.clocks.end()) {}
  ClockView view;
  std::vector<Clock> clocks;
};

/// server::ServerView, copied for Python.
struct ServerState {
  std::vector<Clock> clocks;
  std::vector<Pace> paces;
  std::size_t worker = 0, table = 0;
  Clock least = 0;
};

ServerState state_of(const server::ServerView& view) {
  return {.clocks = {view.clocks.begin(), view.clocks.end()},
          .paces = {view.paces.begin(), view.paces.end()},
          .worker = view.worker,
          .table = view.table,
          .least = view.least};
}

bool is_true(const nb::object& value) {
  const int yes = PyObject_IsTrue(value.ptr());
  if (yes < 0) nb::raise_python_error();
  return yes == 1;
}

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
        return with_gil(model.who(), [&] { return is_true((*hook)(ClockState(clocks))); });
      };
    if (nb::hasattr(made, "last_step"))
      rule.last_step = [&model, hook = held<nb::object>(made.attr("last_step"))](const server::ServerView& view) {
        return with_gil(model.who(),
                        [&] { return value_of<Clock>(model, "last_step", (*hook)(state_of(view)), "a whole number"); });
      };
    if (nb::hasattr(made, "sends_unasked"))
      rule.sends_unasked = [&model,
                            hook = held<nb::object>(made.attr("sends_unasked"))](const server::ServerView& view) {
        return with_gil(model.who(), [&] { return is_true((*hook)(state_of(view))); });
      };
    if (nb::hasattr(made, "part"))
      rule.part = [&model, hook = held<nb::object>(made.attr("part"))](
                      const ClockView& clocks, std::span<const float> weights, std::span<const float> update,
                      std::span<float> sent) {
        with_gil(model.who(), [&] {
          const Lent lent;
          (*hook)(ClockState(clocks), lent.over(weights), lent.over(update), lent.over(sent));
          lent.require_returned(model, "part");
        });
      };
    rule.sees_clocks = nb::hasattr(made, "sees_clocks") && is_true(made.attr("sees_clocks"));
    return rule;
  });
}

void bind_views(nb::module_& module) {
  const auto field = [](Clock ClockView::*member) {
    return [member](const ClockState& self) { return self.view.*member; };
  };
  nb::class_<ClockState>(module, "ClockView",
                         "A worker's copy of one shard, when the worker decides whether to send. A clock counts steps.")
      .def_prop_ro("own", field(&ClockView::own), "The worker's clock: the steps that it has ended.")
      .def_prop_ro("fetched", field(&ClockView::fetched), "Steps of all workers that its copy contains.")
      .def_prop_ro("sent", field(&ClockView::sent), "Its own steps whose whole updates the server has.")
      .def_prop_ro("wanted", field(&ClockView::wanted),
                   "Another worker waits for all updates of the first `wanted` steps.")
      .def_prop_ro(
          "significance", [](const ClockState& self) { return self.view.significance; },
          "Size of the accumulated update over the size of the weights.")
      .def_ro(
          "clocks", &ClockState::clocks,
          "With sees_clocks: the clocks of all workers when the server sent the worker's copy; [] if none is known.");
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
