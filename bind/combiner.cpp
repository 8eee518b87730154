// The combiner for Python: averages gradients in memory of another framework's, bucket by bucket.
#include "syncopate/combiner.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <deque>

#include "coding.hpp"
#include "component/catalogue.hpp"
#include "group.hpp"
#include "syncopate/error.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

constexpr const char* kDoc =
    "Averages gradients in memory of the caller's, one bucket at a time, as a Synchronizer does with its own. The "
    "codec's state belongs to gradients by name, so that buckets and addresses may change from step to step. Every "
    "rank gives the same gradients and options, and in each step the same buckets in the same order; one thread at a "
    "time uses it, and no other thread the group. exchange: one that ends with gradients. weights: for codecs that "
    "look at them.\n\n"
    "Raises as Synchronizer does.";

using Placed = std::vector<std::pair<std::size_t, nb::object>>;

/// A combiner with what it must not outlive. Used and destroyed with the GIL.
class Combining final {
 public:
  Combining(const Membership& membership, const std::vector<Tensor>& tensors, CombinerOptions options,
            std::vector<Array> weights, std::shared_ptr<std::vector<nb::object>> components)
      : group_(membership.group()),
        signals_(membership.signals()),
        weights_(std::move(weights)),
        components_(std::move(components)) {
    for (const Array& weight : weights_) options.weights.push_back(weight.buffer);
    own_ = signals_->without_gil([&] { return std::make_unique<Combiner>(*group_, gradients_of(tensors), options); });
  }

  [[nodiscard]] Combiner& own() const {
    if (own_) return *own_;
    throw Misuse("this combiner was closed; make another one");
  }
  void combine(const Placed& bucket) {
    std::vector<Array> arrays;
    const auto placed = placed_in(bucket, arrays);
    signals_->without_gil([&] { own().combine(placed); });
  }
  void encode(const Placed& bucket) {
    std::vector<Array> arrays;
    const auto placed = placed_in(bucket, arrays);
    signals_->without_gil([&] { own().encode(placed); });
    underway_.push_back(std::move(arrays));
  }
  void exchange() {
    signals_->without_gil([&] { own().exchange(); });
  }
  void decode() {
    signals_->without_gil([&] { own().decode(); });
    underway_.pop_front();
  }
  void end_step() {
    signals_->without_gil([&] { own().end_step(); });
  }
  void close() {
    own_.reset();
    group_.reset();
  }

 private:
  static std::vector<PlacedGradient> placed_in(const Placed& bucket, std::vector<Array>& arrays) {
    std::vector<PlacedGradient> placed;
    for (const auto& [gradient, values] : bucket) {
      arrays.push_back(array_of(values, {}, "values"));
      placed.push_back({gradient, arrays.back().buffer});
    }
    return placed;
  }

  std::shared_ptr<Group> group_;
  std::shared_ptr<Signals> signals_;
  std::vector<Array> weights_;
  std::shared_ptr<std::vector<nb::object>> components_;
  std::deque<std::vector<Array>> underway_;  ///< of buckets that are not decoded yet
  std::unique_ptr<Combiner> own_;
};

void make_combiner(const CodingGiven& coding, Combining* self, const Membership& group,
                   const std::vector<Tensor>& gradients, const std::string& exchange, const std::string& algorithm,
                   const std::vector<nb::object>& weights, const CatalogueGiven& catalogue) {
  CatalogueChosen chosen(catalogue);
  CombinerOptions options{.coding = coding.options(chosen), .exchange = exchange, .algorithm = algorithm};
  options.catalogue = chosen.catalogue();
  std::vector<Array> arrays;
  for (const nb::object& weight : weights) arrays.push_back(array_of(weight, {}, "weights"));
  new (self) Combining(group, gradients, std::move(options), std::move(arrays), chosen.entries());
}

}  // namespace

void bind_combiner(nb::module_& module) {
  nb::class_<Combining> type(module, "Combiner", kDoc);
  define_with_coding(
      [&](auto make, auto... coding) {
        type.def("__init__", make, "group"_a, "gradients"_a, nb::kw_only(), "exchange"_a = "allreduce",
                 "algorithm"_a = "auto", "weights"_a = std::vector<nb::object>{}, "catalogue"_a = CatalogueGiven{},
                 coding...);
      },
      make_combiner);
  type.def("combine", &Combining::combine, "bucket"_a,
           "Return when the arrays of these (index of the gradient, array) hold their average over the ranks.")
      .def("encode", &Combining::encode, "bucket"_a,
           "The first phase of `combine`, for two threads: one calls encode and decode, another exchange. Each phase "
           "takes the oldest bucket that has passed the phase before.")
      .def("exchange", &Combining::exchange, "The second phase: the ranks exchange what `encode` made.")
      .def("decode", &Combining::decode, "The third phase: return when the arrays hold their average.")
      .def_prop_ro(
          "casts_to",
          [](const Combining& self) -> std::optional<std::string_view> {
            const std::optional<DType> type = self.own().casts_to();
            return type ? std::optional(name_of(*type)) : std::nullopt;
          },
          "The type to which the codec rounds f32 and does nothing else, or None: values of f32 gradients may come in "
          "it, rounded to nearest even, and then hold the average in it.")
      .def_prop_ro(
          "codes_ahead", [](const Combining& self) { return self.own().codes_ahead(); },
          "Whether a second thread shortens steps: there is a codec and a second processor, and encoding needs no "
          "other rank.")
      .def("end_step", &Combining::end_step,
           "End a step: what its buckets left in the codec's state counts from now on, unless a value on any rank is "
           "not finite. A collective of codecs with state.")
      .def(
          "discard_step", [](Combining& self) { self.own().discard_step(); },
          "After an update that every rank skips: the codec's state is as before the last step.")
      .def(
          "save", [](const Combining& self) { return saved_in_python(self.own().save()); }, kSaveDoc)
      .def(
          "restore",
          [](Combining& self, const std::string& codec, std::uint64_t steps, int rank, int ranks,
             const SavedGradients& gradients) { self.own().restore(saved_of(codec, steps, rank, ranks, gradients)); },
          "codec"_a, "steps"_a, "rank"_a, "ranks"_a, "gradients"_a, kRestoreDoc)
      .def("close", &Combining::close, "End it; it keeps its group until then.");
}

}  // namespace syncopate::bind
