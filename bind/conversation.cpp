// The classes CodecTensor, CodecStep and CodecRound of the Python package, and the functions that make rounds.
#include "conversation.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <numeric>

#include "syncopate/error.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

nb::capsule owner_without_memory() {
  static constexpr int kNothing = 0;
  return {&kNothing, [](void* /*nothing*/) noexcept {}};
}

/// An array or bytes of any type, contiguous, in the CPU's memory.
nb::ndarray<nb::ro> part_of(nb::handle object) {
  nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> part;
  if (nb::try_cast(object, part, true) && part.is_valid()) return nb::ndarray<nb::ro>(part);
  throw Misuse(fmt::format("a payload is {}; allowed: bytes, or an array in the CPU's memory",
                           nb::cast<std::string>(nb::str(object.type()))));
}

PythonRound gather(nb::handle payload) { return {compress::Combine::gather, {part_of(payload)}}; }

PythonRound additive(nb::handle array) {
  nb::ndarray<nb::ro> part = part_of(array);
  if (part.dtype() != nb::dtype<float>() && part.dtype() != nb::dtype<double>())
    throw Misuse("an additive round averages numbers; allowed: an array of float32 or float64");
  return {compress::Combine::additive, {std::move(part)}};
}

PythonRound scatter(nb::handle parts) {
  PythonRound round{compress::Combine::scatter, {}};
  for (const nb::handle part : nb::borrow<nb::object>(parts)) round.parts.push_back(part_of(part));
  return round;
}

constexpr auto kOwned = nb::rv_policy::automatic;  // the arrays have an owner

constexpr const char* kSentDoc =
    "Record which elements this rank's payload contains; the residual keeps the others. indices: distinct, by default "
    "all; values: what the other ranks decode in their place, by default the exact values. Afterwards `values` holds "
    "the residual. Without feedback it only counts what was sent.";

}  // namespace

CodecTensor::CodecTensor(const compress::Tensor& tensor, const compress::Feedback& feedback)
    : tensor_(&tensor), feedback_(feedback), compensated_(tensor, feedback), owner_(owner_without_memory()) {
  compensated_.form({0, compensated_.size()});
  is_sent_ = !compensated_.keeps() || compensated_.size() == 0;
}

const compress::Tensor& CodecTensor::own() const {
  if (tensor_ != nullptr) return *tensor_;
  throw Misuse("the step of this tensor has ended; a codec uses tensors only in the call that received them");
}

CodecTensor::Floats CodecTensor::over(const void* data, std::size_t elements) const {
  return Floats(const_cast<float*>(static_cast<const float*>(data)), {elements}, owner_);
}

std::size_t CodecTensor::state_elements() const {
  const std::size_t bytes = own().next.size();
  const std::size_t feedback = compensated_.keeps() ? compress::feedback_bytes(feedback_, own()) : 0;
  return (bytes - feedback) / sizeof(float);
}

CodecTensor::Floats CodecTensor::values() const { return over(compensated_.elements(), own().values.count); }
CodecTensor::Floats CodecTensor::average() const { return over(own().values.data, own().values.count); }
CodecTensor::Floats CodecTensor::kept() const { return over(own().kept.data(), state_elements()); }
CodecTensor::Floats CodecTensor::next() const { return over(own().next.data(), state_elements()); }

void CodecTensor::sent(const std::optional<Indices>& indices, const std::optional<Values>& values) {
  const std::size_t size = own().values.count;
  const std::size_t count = indices ? indices->size() : size;
  if (values && values->size() != count)
    throw Misuse(fmt::format("sent has {} elements and {} values; allowed: equal numbers", count, values->size()));
  if (!indices) {
    compensated_.sent(Range{0, size}, values ? values->data() : compensated_.elements());
  } else {
    const std::span<const std::uint32_t> chosen(indices->data(), count);
    if (const auto most = std::ranges::max_element(chosen); most != chosen.end() && *most >= size)
      throw Misuse(fmt::format("sent has the index {}; allowed: 0 to {}", *most, size - 1));
    if (values)
      compensated_.sent(chosen, {values->data(), count});
    else
      compensated_.sent(chosen);
    if (own().report != nullptr) own().report->add(count, size);
  }
  is_sent_ = true;
}

void CodecTensor::require_sent(const std::string& who) const {
  if (!is_sent_)
    throw Misuse(
        fmt::format("{} has feedback and did not call `sent` for a tensor; call tensor.sent(indices), also "
                    "where nothing was sent",
                    who));
}

void CodecTensor::end(const std::string& who) {
  require_sent(who);
  if (Py_REFCNT(owner_.ptr()) > 1)
    throw Misuse(fmt::format("{} still uses an array of a tensor after its last round; keep a copy instead", who));
}

void bind_conversation(nb::module_& module) {
  static_cast<void>(
      nb::class_<PythonRound>(module, "CodecRound", "A round of a codec, from gather, additive or scatter."));
  module.def("gather", gather, "payload"_a,
             "A round in which every rank receives every rank's payload (an array or bytes of any length). Answer: a "
             "list of new arrays, by rank, with the payload's type of elements (bytes: uint8), of one dimension.");
  module.def("additive", additive, "array"_a,
             "A round that averages arrays of float32 or float64, of equal length on every rank. Answer: a new array "
             "of one dimension.");
  module.def("scatter", scatter, "parts"_a,
             "A round in which rank r receives part r of every rank. Answer: a list as of gather. Usually a gather "
             "round of the results follows.");
  nb::class_<CodecTensor>(module, "CodecTensor",
                          "A gradient, or this rank's rows of it, while a codec exchanges it. Its arrays are NumPy's, "
                          "flat, over memory of the library: a codec copies what it needs later.")
      .def_prop_ro("values", &CodecTensor::values, kOwned,
                   "The elements to encode: with feedback, the gradient plus the residual.")
      .def_prop_ro("average", &CodecTensor::average, kOwned,
                   "Write the average here. Without feedback it is the memory of `values`.")
      .def_prop_ro("kept", &CodecTensor::kept, kOwned,
                   "The codec's state: `next` of the last step that succeeded; zero at first.")
      .def_prop_ro("next", &CodecTensor::next, kOwned,
                   "The codec's state for the next step, to be written completely; it counts if this step succeeds.")
      .def_prop_ro("rows", &CodecTensor::rows, "Rows of the gradient as a matrix.")
      .def_prop_ro("columns", &CodecTensor::columns, "Columns; rows * columns elements.")
      .def_prop_ro("key", &CodecTensor::key,
                   "A number of the gradient and the seed, equal on all ranks, for random numbers.")
      .def("sent", &CodecTensor::sent, "indices"_a = nb::none(), "values"_a = nb::none(), kSentDoc);
  nb::class_<CodecStep>(module, "CodecStep", "The step and the ranks of a codec's conversation.")
      .def_prop_ro("step", [](const CodecStep& self) { return self.info.step; })
      .def_prop_ro("rank", [](const CodecStep& self) { return self.info.rank; })
      .def_prop_ro("ranks", [](const CodecStep& self) { return self.info.ranks; })
      .def_ro("numbers", &CodecStep::numbers, "The numbers of the codec's parameter.");
}

}  // namespace syncopate::bind
