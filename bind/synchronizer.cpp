// The synchronizer for Python: gradients of any framework, averaged while the backward pass goes on.
#include "syncopate/synchronizer.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "coding.hpp"
#include "component/catalogue.hpp"
#include "group.hpp"
#include "optimizer.hpp"
#include "remembered.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

/// Python objects that a synchronizer uses.
struct Held {
  std::vector<Array> weights;
  std::shared_ptr<nb::callable> update;                 ///< null: none, or an optimizer
  nb::object optimizer;                                 ///< an Optimizing; null: none
  std::shared_ptr<std::vector<nb::object>> components;  ///< of the catalogue
};

using UpdateGiven = std::variant<std::monostate, Optimizing*, nb::callable>;

/// Calls an update on the communication thread.
std::function<void(std::size_t, std::size_t)> update_in(std::shared_ptr<nb::callable> update) {
  return [update = std::move(update)](std::size_t first, std::size_t last) {
    const nb::gil_scoped_acquire acquire;
    std::string failure;
    try {
      (*update)(first, last);
    } catch (const nb::python_error& raised) {
      failure = raised.what();
    }
    // A Python exception must not pass through threads without the GIL.
    if (!failure.empty()) throw std::runtime_error(failure);
  };
}

/// A synchronizer with what it must not outlive. Used and destroyed with the GIL.
class Averaging final {
 public:
  Averaging(const Membership& membership, std::vector<Tensor> tensors, SynchronizerOptions options, Held held)
      : group_(membership.group()),
        signals_(membership.signals()),
        tensors_(std::move(tensors)),
        weights_(std::move(held.weights)),
        update_(std::move(held.update)),
        optimizer_(std::move(held.optimizer)),
        components_(std::move(held.components)) {
    if (update_) options.update = update_in(update_);
    try {
      if (optimizer_) options.update = update_by(nb::cast<Optimizing&>(optimizer_), options.exchange);
    } catch (const Misuse& misuse) {
      if (options.exchange == "none") throw;
      signals_->without_gil([&] { refuse(*group_, misuse.what()); });
    }
    std::vector<Gradient> gradients = gradients_of(tensors_);
    for (const Array& weight : weights_) options.weights.push_back(weight.buffer);
    own_ =
        signals_->without_gil([&] { return std::make_unique<Synchronizer>(*group_, std::move(gradients), options); });
    for (std::size_t i = 0; optimizer_ && i < tensors_.size(); ++i) {
      const Buffer buffer = own_->gradient(i);
      updated_.emplace_back(static_cast<float*>(buffer.data), buffer.count);
    }
  }
  ~Averaging() { close(); }
  Averaging(const Averaging&) = delete;
  Averaging& operator=(const Averaging&) = delete;

  [[nodiscard]] Synchronizer& own() const {
    if (own_) return *own_;
    throw Misuse("this synchronizer was closed; make another one");
  }
  [[nodiscard]] bool is_closed() const noexcept { return !own_; }
  void close() {
    {
      const nb::gil_scoped_release release;  // exchanges that other ranks wait for end first
      delete own_.get();                     // not `reset`: an update in Python may still ask for gradients
      static_cast<void>(own_.release());
    }
    group_.reset();
  }
  /// References of an update in Python, for Python's garbage collector.
  [[nodiscard]] const std::shared_ptr<nb::callable>& update() const noexcept { return update_; }
  [[nodiscard]] const std::vector<nb::object>& components() const noexcept { return *components_; }
  [[nodiscard]] const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
  template <class Wait>
  decltype(auto) without_gil(Wait&& wait) const {
    return signals_->without_gil(std::forward<Wait>(wait));
  }

 private:
  /// Needs no GIL on the communication thread.
  std::function<void(std::size_t, std::size_t)> update_by(Optimizing& optimizer, std::string_view exchange) {
    optimizer.require_fits(weights_, exchange);
    for (const Tensor& tensor : tensors_)
      if (tensor.shape.dtype != DType::f32)
        throw Misuse("gradient '" + tensor.name + "' is of type " + std::string(name_of(tensor.shape.dtype)) +
                     ", and an optimizer updates it; allowed: f32");
    return [this, &optimizer](std::size_t first, std::size_t last) {
      optimizer.update(first, std::span(updated_).subspan(first, last + 1 - first));
    };
  }

  std::shared_ptr<Group> group_;
  std::shared_ptr<Signals> signals_;
  std::vector<Tensor> tensors_;
  std::vector<Array> weights_;
  std::shared_ptr<nb::callable> update_;
  nb::object optimizer_;                   ///< refers to no other Python object but arrays
  std::vector<std::span<float>> updated_;  ///< the optimizer's gradients
  std::shared_ptr<std::vector<nb::object>> components_;
  std::unique_ptr<Synchronizer> own_;
};

constexpr const char* kDoc =
    "Owns the gradients' memory and averages gradients over the ranks of a group, for any framework.\n\n"
    "In a step the backward pass writes gradient i into `gradient(i)` and calls `ready(i)`, once for each, from any "
    "thread; then the caller calls `wait()`, and every gradient holds the average. Every rank gives the same gradients "
    "and options. policy, codec, exchange, algorithm: names from `syncopate info`. policy and codec: also a Policy or "
    "Codec of your own; catalogue: those that a name with a parameter means. feedback: its kind, or a Feedback. "
    "clip_norm > 0 scales the averaged gradients to this global L2 norm at most. weights, update, broadcast_every: for "
    "exchanges that end with weights; `update(first, last)` applies those gradients on the communication thread. "
    "update: also an Optimizer with the same weights.\n\n"
    "Raises Misuse (unknown names, empty tensors, a type that the codec does not take), Mismatch (ranks disagree).";

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto& update = nb::inst_ptr<Averaging>(self)->update();
  if (update) Py_VISIT(update->ptr());
  for (const nb::object& one : nb::inst_ptr<Averaging>(self)->components()) Py_VISIT(one.ptr());
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Averaging>(self)->close();
  const auto& update = nb::inst_ptr<Averaging>(self)->update();
  if (update) update->reset();
  return 0;
}

PyType_Slot kSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

void bind_values(nb::module_& module) {
  nb::class_<BucketInfo>(module, "Bucket", "The gradients first to last (inclusive) travel together.")
      .def_ro("first", &BucketInfo::first)
      .def_ro("last", &BucketInfo::last)
      .def_ro("bytes", &BucketInfo::bytes);
  nb::class_<SentShare>(module, "SentShare",
                        "The elements of one gradient that its codec sent, since the synchronizer was created.")
      .def_ro("sent", &SentShare::sent, "Elements sent, in all steps.")
      .def_ro("elements", &SentShare::elements,
              "Elements of the gradient times the steps; sent / elements is the density.")
      .def_ro("threshold", &SentShare::threshold, "importance: alpha in the last step; 0 for other codecs.")
      .def_ro("spread", &SentShare::spread, "Variance over mean of the importance; 0: not known.")
      .def_ro(
          "proposed", &SentShare::proposed,
          "Sum over the steps and all ranks' masks: an element in two masks counts twice; 0 for codecs without masks.")
      .def_ro("importances", &SentShare::importances,
              "Elements by importance: entry k from 2^(k - 16) on. The first counts smaller ones too, the last larger "
              "ones.");
  nb::class_<StepStatistics>(module, "StepStatistics", "Costs of the last step on this rank.")
      .def_ro("wire_bytes", &StepStatistics::wire_bytes, "Bytes sent, headers included.")
      .def_ro("payload_bytes", &StepStatistics::payload_bytes, "Bytes that codecs encoded, each counted once.")
      .def_ro("wait_s", &StepStatistics::wait_s, "Seconds that `wait` blocked.")
      .def_ro("gradient_norm", &StepStatistics::gradient_norm, "Global L2 norm before clipping; 0 without clip_norm.")
      .def_ro("predicted_s", &StepStatistics::predicted_s, "Seconds predicted for the step before it began; 0: none.")
      .def_ro("measuring", &StepStatistics::measuring, "The step ran under a partition that serves to measure.");
}

void bind_saving(nb::class_<Averaging>& type) {
  type.def(
          "save", [](const Averaging& self) { return saved_in_python(self.own().save()); }, kSaveDoc)
      .def(
          "restore",
          [](Averaging& self, const std::string& codec, std::uint64_t steps, int rank, int ranks,
             const SavedGradients& gradients) { self.own().restore(saved_of(codec, steps, rank, ranks, gradients)); },
          "codec"_a, "steps"_a, "rank"_a, "ranks"_a, "gradients"_a, kRestoreDoc);
}

void bind_step(nb::class_<Averaging>& type) {
  type.def(
          "gradient",
          [](const Averaging& self, std::size_t i) {
            const Buffer buffer = self.own().gradient(i);
            return array_over(buffer.data, self.tensors().at(i).shape, owner_of(self.own().memory()));
          },
          "i"_a,
          "The memory of gradient i in its shape, initially zero, which may be used longer than the synchronizer: an "
          "array with DLPack and the buffer protocol, for "
          "`numpy.from_dlpack` or `torch.from_dlpack`.")
      .def(
          "ready", [](Averaging& self, std::size_t i) { self.without_gil([&] { self.own().ready(i); }); }, "i"_a,
          "Report that gradient i is completely written. Its exchange may start at once, on another thread.")
      .def(
          "wait", [](Averaging& self) { self.without_gil([&] { self.own().wait(); }); },
          "Return when every gradient holds the average, or every weight its new value. Raises what the exchange "
          "raised, or Misuse naming a gradient that never became ready.")
      .def(
          "wait_for_gradient",
          [](Averaging& self, std::size_t i) { return self.without_gil([&] { return self.own().wait(i); }); }, "i"_a,
          "Wait for gradient i only and return its bucket; `wait` still has to end the step.")
      .def("close", &Averaging::close,
           "End it, as Group.close ends a group. Buckets whose gradients are ready are exchanged first, in the group's "
           "timeout at the latest. Until then it keeps its group.")
      .def_prop_ro("closed", &Averaging::is_closed, "Whether `close` was called.")
      .def(
          "accumulate", [](Averaging& self, bool on) { self.own().accumulate(on); }, "on"_a,
          "While on, `ready` has no effect, so that gradients of several micro-batches add up.")
      .def(
          "discard_step", [](Averaging& self) { self.without_gil([&] { self.own().discard_step(); }); },
          "After an update that every rank skips: the codec's state is as before the last step.")
      .def(
          "buckets", [](const Averaging& self) { return self.without_gil([&] { return self.own().buckets(); }); },
          "Buckets in the order of exchange: of the last step, or the planned ones before the first.")
      .def(
          "sent_shares", [](const Averaging& self) { return self.own().sent_shares(); },
          "The elements that codecs sent of each gradient; zeros for codecs that send all. Call it between steps.")
      .def(
          "statistics", [](const Averaging& self) { return self.own().statistics(); }, "Costs of the last step.");
}

void make_synchronizer(const CodingGiven& coding, Averaging* self, const Membership& group,
                       std::vector<Tensor> gradients, const Given<PythonPolicy>& policy, const std::string& exchange,
                       const std::string& algorithm, std::size_t fusion_bytes, bool zero_missing, double clip_norm,
                       const std::vector<nb::object>& weights, const UpdateGiven& update, int broadcast_every,
                       const CatalogueGiven& catalogue) {
  CatalogueChosen chosen(catalogue);
  SynchronizerOptions options{.policy = chosen.name(policy),
                              .fusion_bytes = fusion_bytes,
                              .coding = coding.options(chosen),
                              .exchange = exchange,
                              .algorithm = algorithm,
                              .zero_missing = zero_missing,
                              .clip_norm = clip_norm,
                              .broadcast_every = broadcast_every};
  options.catalogue = chosen.catalogue();
  std::vector<Array> arrays;
  for (const nb::object& weight : weights) arrays.push_back(array_of(weight, {}, "weights"));
  Held kept{.weights = std::move(arrays), .components = chosen.entries()};
  if (const auto* const function = std::get_if<nb::callable>(&update)) kept.update = held(*function);
  if (auto* const* const optimizer = std::get_if<Optimizing*>(&update)) kept.optimizer = nb::find(*optimizer);
  new (self) Averaging(group, std::move(gradients), std::move(options), std::move(kept));
}

}  // namespace

void bind_synchronizer(nb::module_& module) {
  bind_values(module);
  nb::class_<Averaging> type(module, "Synchronizer", nb::type_slots(kSlots), nb::is_weak_referenceable(), kDoc);
  define_with_coding(
      [&](auto make, auto... coding) {
        type.def("__init__", make, "group"_a, "gradients"_a, nb::kw_only(), "policy"_a = "fusion",
                 "exchange"_a = "allreduce", "algorithm"_a = "auto", "fusion_bytes"_a = 0, "zero_missing"_a = false,
                 "clip_norm"_a = 0.0, "weights"_a = std::vector<nb::object>{}, "update"_a.none() = nb::none(),
                 "broadcast_every"_a = 5, "catalogue"_a = CatalogueGiven{}, coding..., nb::call_policy<RememberedNew>(),
                 "`gradients` in the order of the forward pass.");
      },
      make_synchronizer);
  bind_step(type);
  bind_saving(type);
}

}  // namespace syncopate::bind
