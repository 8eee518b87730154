// The class Rule of the Python package: a descriptor whose update calls Python with arrays of NumPy.
#include "component/rule.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <utility>

#include "component/lent.hpp"
#include "syncopate/catalogue.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using optim::Hyperparameter;
using optim::Step;
using optim::TensorSlice;

constexpr const char* kDoc =
    "An optimizer rule of your own: how weights change by a gradient. Every rank, worker and server has an equal one: "
    "pass it as `rule` of an Optimizer or `optimizer` of a TableWorker, or in `catalogue` with its name.\n\n"
    "update(step, weights, gradient, *state): changes the weights and the state in place. They are flat arrays of "
    "float32 of equal length, which is any part of a tensor: the rule treats every element by itself. They refer to "
    "memory of the library, so that the rule keeps none of them. step: a RuleStep. Several threads may call it in "
    "turn.\n"
    "state: names of at most 2 states, each a float32 for each weight, initially zero. hyperparameters: the default "
    "values of those that it takes, of weight_decay, momentum, beta1, beta2 and epsilon.\n\n"
    "Raises Misuse for names that are not allowed. An exception of `update` is raised by the call that updates; on a "
    "server it ends the job.";

constexpr Hyperparameter kKnown[] = {optim::weight_decay(0), optim::momentum(0), optim::beta1(0), optim::beta2(0),
                                     optim::epsilon(0)};

/// The values of a step, copied for Python.
struct RuleStep {
  double rate = 0, weight_decay = 0;
  std::uint64_t step = 0;
  optim::Hyperparameters with;
};

void update(const void* self, const Step& step, const TensorSlice& part) {
  const auto& rule = *static_cast<const PythonRule*>(self);
  with_gil(rule.who(), [&] {
    const Lent lent;
    {
      nb::list arguments;
      arguments.append(RuleStep{step.rate(), step.decay(), step.at.step, step.with});
      arguments.append(lent.over(part.weights));
      arguments.append(lent.over(part.gradient));
      for (std::size_t s = 0; s < rule.state.size(); ++s)
        arguments.append(lent.over(std::span(part.state[s], part.size())));
      rule.functions()[0](*nb::tuple(arguments));
    }
    lent.require_returned(rule, "update");
  });
  std::ranges::fill(part.gradient, 0.0F);
}

Hyperparameter taken(const std::string& rule, const std::string& name, double usual) {
  const auto known = std::ranges::find(kKnown, name, &Hyperparameter::name);
  if (known == std::end(kKnown))
    throw Misuse(
        fmt::format("optimizer {} takes '{}'; allowed: weight_decay, momentum, beta1, beta2, epsilon", rule, name));
  Hyperparameter own = *known;
  own.usual = usual;
  return own;
}

}  // namespace

PythonRule::PythonRule(std::string own_name, nb::object function, std::vector<std::string> states,
                       const std::vector<std::pair<std::string, double>>& hyperparameters)
    : Component("optimizer", std::move(own_name), {std::move(function)}),
      states_(std::move(states)),
      state_names_(states_.begin(), states_.end()) {
  for (const auto& [each, usual] : hyperparameters) takes_.push_back(taken(this->own_name(), each, usual));
  static_cast<optim::Rule&>(*this) = {.name = this->own_name(),
                                      .summary = "a rule of this program",
                                      .source = "Python",
                                      .takes = takes_,
                                      .state = state_names_,
                                      .update = {bind::update, this}};
  static_cast<void>(Catalogue().with(*this));  // its name and its states
}

void bind_rule(nb::module_& module) {
  nb::class_<RuleStep>(module, "RuleStep", "One update of a part of a tensor, for a rule.")
      .def_ro("rate", &RuleStep::rate, "The learning rate.")
      .def_ro("step", &RuleStep::step, "Counted from 1.")
      .def_ro("weight_decay", &RuleStep::weight_decay, "0 for a tensor that is spared.")
      .def_prop_ro("momentum", [](const RuleStep& self) { return self.with.momentum; })
      .def_prop_ro("beta1", [](const RuleStep& self) { return self.with.beta1; })
      .def_prop_ro("beta2", [](const RuleStep& self) { return self.with.beta2; })
      .def_prop_ro("epsilon", [](const RuleStep& self) { return self.with.epsilon; });
  nb::class_<PythonRule>(module, "Rule", nb::type_slots(component_slots<PythonRule>), nb::is_weak_referenceable(), kDoc)
      .def(
          "__init__",
          [](PythonRule* self, const std::string& name, const nb::callable& update,
             const std::vector<std::string>& state, const std::map<std::string, double>& hyperparameters) {
            new (self) PythonRule(name, update, state, {hyperparameters.begin(), hyperparameters.end()});
          },
          "name"_a, "update"_a, nb::kw_only(), "state"_a = std::vector<std::string>{},
          "hyperparameters"_a = std::map<std::string, double>{},
          nb::sig("def __init__(self, name: str, update: collections.abc.Callable[..., None], *, "
                  "state: collections.abc.Sequence[str] = [], hyperparameters: dict[str, float] = {}) -> None"))
      .def_prop_ro("name", &PythonRule::own_name)
      .def("__repr__", [](const PythonRule& self) { return "Rule('" + self.own_name() + "')"; });
}

}  // namespace syncopate::bind
