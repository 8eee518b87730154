// The combiner for Python: averages gradients in memory of another framework's, bucket by bucket.
#include "syncopate/combiner.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <thread>

#include "coding.hpp"
#include "component/catalogue.hpp"
#include "error.hpp"
#include "group.hpp"
#include "remembered.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

constexpr const char* kDoc =
    "Averages gradients in memory of the caller's, one bucket at a time, as a Synchronizer does with its own. The "
    "codec's state belongs to gradients by name, so that buckets and addresses may change from step to step. Every "
    "rank gives the same gradients and options, and in each step the same buckets in the same order; one thread at a "
    "time uses it, and no other thread the group. All methods but `start` first wait until started buckets have ended. "
    "exchange: one that ends with gradients. weights: for codecs that look at them.\n\n"
    "Raises as Synchronizer does.";

constexpr const char* kStartDoc =
    "As `combine`, but return at once. A thread of the combiner calls both functions. `arrive()` returns when the "
    "arrays have their values. `ended(error, phases)` is called when they hold their average, in the order of `start`. "
    "error: None, or what `combine` raises; buckets that follow end with it too. phases: a list of (\"encode\", "
    "\"exchange\" or \"decode\", begin, end) in seconds of time.perf_counter. An exception of either function is an "
    "error of the combiner. ends_step: as `end_step` after this bucket, before `ended`. Both may call `start` and "
    "`close` only.";

using Placed = std::vector<std::pair<std::size_t, nb::object>>;

/// Python objects of a started bucket. Destroyed with the GIL.
struct StartedInPython {
  std::vector<Array> arrays;
  nb::callable ended;
  std::optional<nb::callable> arrive;
};

nb::list in_python(const std::vector<CombinedBucket::Phase>& phases) {
  nb::list made;
  for (const auto& [name, begin_s, end_s] : phases) made.append(nb::make_tuple(name, begin_s, end_s));
  return made;
}

/// `started` lives until the end of `ended`, which is called once.
BucketCalls calls_of(StartedInPython* started, bool ends_step) {
  BucketCalls calls{.ends_step = ends_step};
  if (started->arrive)
    calls.arrive = [started] {
      if (!nb::is_alive()) throw std::runtime_error("the interpreter has ended");
      with_gil("arrive", [&] { (*started->arrive)(); });
    };
  calls.ended = [started](const CombinedBucket& combined) {
    if (!nb::is_alive()) return;  // `started` is left alone
    const nb::gil_scoped_acquire acquire;
    const std::unique_ptr<StartedInPython> own(started);
    with_gil("ended", [&] { own->ended(exception_object(combined.error), in_python(combined.phases)); });
  };
  return calls;
}

/// Python objects that a combiner uses.
struct Held {
  std::vector<Array> weights;
  std::shared_ptr<std::vector<nb::object>> components;  ///< of the catalogue
};

/// Its end waits for buckets, whose calls want the GIL and may themselves have the last reference.
std::shared_ptr<Combiner> shared(std::unique_ptr<Combiner> combiner, std::shared_ptr<Group> group,
                                 std::shared_ptr<Held> held) {
  return {combiner.release(), [group = std::move(group), held = std::move(held)](Combiner* left) {
            if (left->is_own_thread()) return std::thread([left, group, held] { delete left; }).detach();
            const nb::gil_scoped_release release;
            delete left;
          }};
}

/// A combiner with what it must not outlive. Used and destroyed with the GIL.
class Combining final {
 public:
  Combining(const Membership& membership, const std::vector<Tensor>& tensors, CombinerOptions options, Held objects)
      : group_(membership.group()), signals_(membership.signals()) {
    auto group = membership.group();
    for (const Array& weight : objects.weights) options.weights.push_back(weight.buffer);
    auto kept = held(std::move(objects));
    own_ = shared(
        signals_->without_gil([&] { return std::make_unique<Combiner>(*group, gradients_of(tensors), options); }),
        group, std::move(kept));
  }

  /// A call without the GIL keeps it, because a call of a bucket may close it meanwhile.
  [[nodiscard]] std::shared_ptr<Combiner> own() const {
    if (own_) return own_;
    throw Misuse("this combiner was closed; make another one");
  }
  template <class Use>
  decltype(auto) without_gil(const Use& use) const {
    const auto kept = own();
    wait_for_buckets(*kept);
    return signals_->without_gil([&] { return use(*kept); });
  }
  void wait() const { wait_for_buckets(*own()); }
  void combine(const Placed& bucket) {
    std::vector<Array> arrays;
    const auto placed = placed_in(bucket, arrays);
    without_gil([&](Combiner& own) { own.combine(placed); });
  }
  void start(const Placed& bucket, nb::callable ended, std::optional<nb::callable> arrive, bool ends_step) {
    auto started = std::make_unique<StartedInPython>(
        StartedInPython{.arrays = {}, .ended = std::move(ended), .arrive = std::move(arrive)});
    auto placed = placed_in(bucket, started->arrays);
    own()->start(std::move(placed), calls_of(started.get(), ends_step));
    static_cast<void>(started.release());
  }
  void close() { own_.reset(); }

 private:
  static std::vector<PlacedGradient> placed_in(const Placed& bucket, std::vector<Array>& arrays) {
    std::vector<PlacedGradient> placed;
    for (const auto& [gradient, values] : bucket) {
      arrays.push_back(array_of(values, {}, "values"));
      placed.push_back({gradient, arrays.back().buffer});
    }
    return placed;
  }

  void wait_for_buckets(const Combiner& own) const try {
    if (own.wait_for(std::chrono::milliseconds(0))) return;
    wait_in_pieces([&](std::chrono::milliseconds bound) { return own.wait_for(bound); });
  } catch (const nb::python_error&) {
    if (const auto group = group_.lock()) group->abort("its program was interrupted while it waited for buckets");
    throw;
  }

  std::weak_ptr<Group> group_;  ///< its last user leaves it
  std::shared_ptr<Signals> signals_;
  std::shared_ptr<Combiner> own_;
};

void make_combiner(const CodingGiven& coding, Combining* self, const Membership& group,
                   const std::vector<Tensor>& gradients, const std::string& exchange, const std::string& algorithm,
                   const std::vector<nb::object>& weights, const CatalogueGiven& catalogue) {
  CatalogueChosen chosen(catalogue);
  CombinerOptions options{.coding = coding.options(chosen), .exchange = exchange, .algorithm = algorithm};
  options.catalogue = chosen.catalogue();
  std::vector<Array> arrays;
  for (const nb::object& weight : weights) arrays.push_back(array_of(weight, {}, "weights"));
  new (self)
      Combining(group, gradients, std::move(options), {.weights = std::move(arrays), .components = chosen.entries()});
}

}  // namespace

void bind_combiner(nb::module_& module) {
  nb::class_<Combining> type(module, "Combiner", nb::is_weak_referenceable(), kDoc);
  define_with_coding(
      [&](auto make, auto... coding) {
        type.def("__init__", make, "group"_a, "gradients"_a, nb::kw_only(), "exchange"_a = "allreduce",
                 "algorithm"_a = "auto", "weights"_a = std::vector<nb::object>{}, "catalogue"_a = CatalogueGiven{},
                 coding..., nb::call_policy<RememberedNew>());
      },
      make_combiner);
  type.def("combine", &Combining::combine, "bucket"_a,
           "Return when the arrays of these (index of the gradient, array) hold their average over the ranks.")
      .def("start", &Combining::start, "bucket"_a, "ended"_a, nb::kw_only(), "arrive"_a = nb::none(),
           "ends_step"_a = false,
           nb::sig("def start(self, bucket: collections.abc.Sequence[tuple[int, object]], ended: "
                   "collections.abc.Callable[[BaseException | None, list[tuple[str, float, float]]], object], *, "
                   "arrive: collections.abc.Callable[[], object] | None = None, ends_step: bool = False) -> None"),
           kStartDoc)
      .def("wait", &Combining::wait,
           "Return when every bucket that was started has ended. Ctrl-C ends the wait and aborts the group.")
      .def_prop_ro(
          "casts_to",
          [](const Combining& self) -> std::optional<std::string_view> {
            const std::optional<DType> type = self.own()->casts_to();
            return type ? std::optional(name_of(*type)) : std::nullopt;
          },
          "The type to which the codec rounds f32 and does nothing else, or None: values of f32 gradients may come in "
          "it, rounded to nearest even, and then hold the average in it.")
      .def(
          "end_step", [](Combining& self) { self.without_gil([](Combiner& own) { own.end_step(); }); },
          "End a step: what its buckets left in the codec's state counts from now on, unless a value on any rank is "
          "not finite. A collective of codecs with state.")
      .def(
          "discard_step", [](Combining& self) { self.without_gil([](Combiner& own) { own.discard_step(); }); },
          "After an update that every rank skips: the codec's state is as before the last step.")
      .def(
          "save",
          [](const Combining& self) {
            return saved_in_python(self.without_gil([](const Combiner& own) { return own.save(); }));
          },
          kSaveDoc)
      .def(
          "restore",
          [](Combining& self, const std::string& codec, std::uint64_t steps, int rank, int ranks,
             const SavedGradients& gradients) {
            const SavedCodecState saved = saved_of(codec, steps, rank, ranks, gradients);
            self.without_gil([&](Combiner& own) { own.restore(saved); });
          },
          "codec"_a, "steps"_a, "rank"_a, "ranks"_a, "gradients"_a, kRestoreDoc)
      .def(
          "close", &Combining::close,
          "End it. Buckets that were started end first, in the group's timeout at the latest. It keeps its group until "
          "then.");
}

}  // namespace syncopate::bind
