// The class Optimizer for Python: its tensors lie in arrays of the caller's, its state in memory of its own.
#include "optimizer.hpp"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>

#include "component/catalogue.hpp"
#include "syncopate/error.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using Arrays = nb::typed<nb::dict, std::string, OwnArray>;

constexpr const char* kDoc =
    "Updates weights in place by a rule of `syncopate info optimizer` or a Rule of your own, and keeps its state.\n\n"
    "weights: arrays of float32 by name, which the optimizer keeps. spared: names of those without weight decay and, "
    "under lars and lamb, with a trust ratio of 1 (biases, scales of normalisation). hyperparameters: by name "
    "(docs/optimizers.md); the others have the rule's defaults. group: its ranks divide the norms of layer-wise rules, "
    "and with own_shards_only also updates and state: for exchange \"sharded\", as `update` of its Synchronizer. Every "
    "rank gives the same arguments. Results do not depend on the division, bit for bit.\n\n"
    "Raises Misuse. One thread at a time uses it.";

std::vector<WeightTensor> tensors_of(const OptimizedWeights& weights, std::vector<Array>& arrays) {
  std::vector<WeightTensor> tensors;
  for (const auto& [name, object] : weights.arrays) {
    arrays.push_back(array_of(object, {}, ("the array of '" + name + "'").c_str()));
    const bool spared = std::ranges::find(weights.spared, name) != weights.spared.end();
    tensors.push_back({.name = name, .weights = arrays.back().buffer, .spared = spared});
  }
  for (const std::string& name : weights.spared)
    if (std::ranges::find(tensors, name, &WeightTensor::name) == tensors.end())
      throw Misuse(fmt::format("'{}' is spared, but is not among the weights; allowed: names of weights", name));
  return tensors;
}

std::vector<std::size_t> elements_of(const std::vector<WeightTensor>& tensors) {
  std::vector<std::size_t> elements;
  for (const WeightTensor& tensor : tensors) elements.push_back(tensor.weights.count);
  return elements;
}

/// The optimizer does not keep the group joined.
SharedUpdate shared_among(const std::shared_ptr<Group>& group, const Shards& shards, bool own_shards_only) {
  return {.shards = shards,
          .rank = group->rank(),
          .own_shards_only = own_shards_only,
          .gather = [joined = std::weak_ptr(group)](std::span<double> values, std::span<const std::size_t> counts) {
            const std::shared_ptr<Group> group = joined.lock();
            if (!group) throw Misuse("the group of this optimizer was closed; make another one");
            gather_among(*group, "squares of norms")(values, counts);
          }};
}

Arrays state_in(nb::handle self) {
  nb::dict state;
  for (const auto& [name, values] : nb::cast<Optimizing&>(self).own().state())
    state[nb::str(name.data(), name.size())] = nb::cast(array_over(values.data(), {{values.size()}, DType::f32}, self));
  return nb::borrow<Arrays>(state);
}

}  // namespace

Optimizing::Optimizing(const OptimizedWeights& weights, OptimizerOptions options,
                       std::shared_ptr<std::vector<nb::object>> components, const Membership* membership,
                       bool own_shards_only)
    : components_(std::move(components)),
      signals_(membership != nullptr ? membership->signals() : std::make_shared<Signals>()),
      shards_({}, 1),
      own_shards_only_(own_shards_only) {
  std::vector<WeightTensor> tensors = tensors_of(weights, weights_);
  if (own_shards_only && membership == nullptr)
    throw Misuse("own_shards_only without a group; allowed: with the group whose ranks have the other shards");
  const auto group = membership != nullptr ? membership->group() : nullptr;
  shards_ = Shards(elements_of(tensors), group ? group->size() : 1);
  if (group) options.shared = shared_among(group, shards_, own_shards_only);
  own_ = std::make_unique<Optimizer>(std::move(tensors), options);
}

void Optimizing::begin_step(std::vector<double> rates, std::uint64_t step) {
  if (rates.size() != weights_.size())
    throw Misuse(fmt::format("{} rates for {} tensors; allowed: one for each", rates.size(), weights_.size()));
  rates_ = std::move(rates);
  step_ = step;
}

void Optimizing::update(std::size_t first, std::span<const std::span<float>> gradients) {
  if (rates_.empty())
    throw Misuse("an optimizer updates before its first step; call begin_step before the first `ready`");
  for (std::size_t begin = 0, end = 0; begin < gradients.size(); begin = end) {
    const double rate = rates_.at(first + begin);
    while (end < gradients.size() && rates_.at(first + end) == rate) ++end;
    own_->update(first + begin, gradients.subspan(begin, end - begin), {.rate = rate, .step = step_});
  }
}

void Optimizing::update(std::size_t first, const std::vector<nb::object>& gradients, const UpdateStep& at) {
  std::vector<Array> arrays;
  std::vector<std::span<float>> values;
  for (const nb::object& gradient : gradients) {
    const Buffer& buffer = arrays.emplace_back(array_of(gradient, {}, "a gradient")).buffer;
    if (buffer.dtype != DType::f32)
      throw Misuse(fmt::format("a gradient has elements of {}; allowed: f32", name_of(buffer.dtype)));
    values.emplace_back(static_cast<float*>(buffer.data), buffer.count);
  }
  signals_->without_gil([&] { own_->update(first, values, at); });
}

void Optimizing::require_fits(const std::vector<Array>& weights, std::string_view exchange) const {
  const bool is_sharded = updater_of(exchange) == Updater::shards;
  if (own_shards_only_ != is_sharded)
    throw Misuse(fmt::format("exchange {} with an optimizer {} own_shards_only; allowed: it if the exchange is sharded",
                             exchange, own_shards_only_ ? "with" : "without"));
  const auto is_same = [](const Array& given, const Array& own) {
    return given.buffer.data == own.buffer.data && given.buffer.count == own.buffer.count;
  };
  if (!std::ranges::equal(weights, weights_, is_same))
    throw Misuse("the weights differ from those of the optimizer; allowed: the same arrays in the same order");
}

void bind_optimizer(nb::module_& module) {
  nb::class_<Optimizing>(module, "Optimizer", kDoc)
      .def(
          "__init__",
          [](Optimizing* self, const nb::typed<nb::dict, std::string, nb::any>& weights, const Given<PythonRule>& rule,
             const std::vector<std::string>& spared, const std::map<std::string, double>& hyperparameters,
             const Membership* group, bool own_shards_only, const CatalogueGiven& catalogue) {
            OptimizedWeights given{{}, spared};
            for (const auto& [name, array] : weights)
              given.arrays.emplace_back(nb::cast<std::string>(name), nb::borrow(array));
            CatalogueChosen chosen(catalogue);
            OptimizerOptions options{.rule = chosen.name(rule)};
            options.catalogue = chosen.catalogue();
            for (const auto& [name, value] : hyperparameters) options.hyperparameters.emplace_back(name, value);
            new (self) Optimizing(given, std::move(options), chosen.entries(), group, own_shards_only);
          },
          "weights"_a, "rule"_a = "momentum", nb::kw_only(), "spared"_a = std::vector<std::string>{},
          "hyperparameters"_a = std::map<std::string, double>{}, "group"_a.none() = nb::none(),
          "own_shards_only"_a = false, "catalogue"_a = CatalogueGiven{})
      .def(
          "update",
          [](Optimizing& self, std::size_t first, const std::vector<nb::object>& gradients, double rate,
             std::uint64_t step) { self.update(first, gradients, {.rate = rate, .step = step}); },
          "first"_a, "gradients"_a, nb::kw_only(), "rate"_a, "step"_a,
          "Update tensors first, first + 1, … with their gradients, which are zero afterwards. rate: the learning "
          "rate. step: counted from 1. Ranks that divide the work make the same calls.")
      .def("begin_step", &Optimizing::begin_step, "rates"_a, "step"_a,
           "Between steps of a Synchronizer that has this optimizer as its `update`: the learning rate of each tensor, "
           "and the number of the next step, counted from 1.")
      .def(
          "shard",
          [](const Optimizing& self, std::size_t tensor, int rank) {
            const Range range = self.shards().of(tensor, rank);
            return std::pair(range.begin, range.end);
          },
          "tensor"_a, "rank"_a, "The elements of a tensor, from begin to end, that belong to a rank of the group.")
      .def_prop_ro(
          "rule", [](Optimizing& self) { return std::string(self.own().rule()); }, "The rule's name.")
      .def_prop_ro("state", state_in,
                   "The state by name, in this object's memory: a float32 for each weight that this rank updates, "
                   "tensor after tensor; initially zero.");
}

}  // namespace syncopate::bind
