// The class Codec of the Python package: a descriptor whose functions call Python.
#include "codec.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "syncopate/catalogue.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using compress::Settings;
using compress::Tensor;

constexpr const char* kDoc =
    "A codec of your own. Every rank makes an equal one, and passes it as `codec`, or in `catalogue` with "
    "codec=\"NAME:PARAMETER\".\n\n"
    "rounds(tensors, step): a generator for the gradients of one bucket that are coded together (CodecTensor, "
    "CodecStep). It yields gather(payload), additive(array) or scatter(parts) and receives the answer; every rank "
    "yields the same kinds of rounds. When it returns, `tensor.average` must hold the average over the ranks, with "
    "equal bits on every rank. It runs on a thread of the library. An exception is raised in the caller that waits, "
    "and the other ranks get RemoteFailure.\n"
    "combines: the kinds of rounds that it yields. parameters: the numbers after the colon of its name, by default "
    "those of the Parameters; `step.numbers` has them. feedback: \"pointless\" (nothing is left out), \"unsound\" (no "
    "residual can be kept), \"sound\" (residual) or \"maskable\" (residual and momentum): a codec with feedback calls "
    "`tensor.sent` for every tensor.\n"
    "wire_bytes(rows, columns, numbers): bytes of a rank's payload for a gradient, for predictions; also the limit of "
    "a scattered part. By default 4 for each element. kept(rows, columns, numbers): number of float32 that "
    "`tensor.kept` and `tensor.next` have; by default 0.\n"
    "decode(packet, elements, numbers): what a packet (bytes as uint8, of one gradient and one rank) adds to that many "
    "elements, an array of float32. A parameter server needs it, because it decodes every worker's packet alone; the "
    "codec then makes one packet, of at most wire_bytes, and calls `tensor.sent` before it yields it.\n\n"
    "Gradients are float32; those of 16 bits are converted. Raises Misuse for names that do not exist.";

constexpr std::pair<const char*, compress::FeedbackUse> kFeedback[] = {{"pointless", compress::FeedbackUse::pointless},
                                                                       {"unsound", compress::FeedbackUse::unsound},
                                                                       {"sound", compress::FeedbackUse::sound},
                                                                       {"maskable", compress::FeedbackUse::maskable}};

compress::FeedbackUse use_named(const std::string& name) {
  for (const auto& [known, use] : kFeedback)
    if (known == name) return use;
  throw Misuse(fmt::format("feedback '{}' of a codec; allowed: pointless, unsound, sound, maskable", name));
}

const char* name_of(compress::FeedbackUse use) {
  return std::ranges::find(kFeedback, use, &std::pair<const char*, compress::FeedbackUse>::second)->first;
}

std::vector<std::string> names_of(const compress::CombineSet& set) {
  std::vector<std::string> names;
  if (set.gather) names.emplace_back("gather");
  if (set.additive) names.emplace_back("additive");
  if (set.scatter) names.emplace_back("scatter");
  return names;
}

compress::CombineSet combines_named(const std::vector<std::string>& names) {
  compress::CombineSet set;
  for (const std::string& name : names) {
    if (name != "gather" && name != "additive" && name != "scatter")
      throw Misuse(fmt::format("combines has '{}'; allowed: gather, additive, scatter", name));
    set.additive |= name == "additive";
    set.gather |= name == "gather";
    set.scatter |= name == "scatter";
  }
  if (names.empty()) throw Misuse("combines is empty; allowed: one or more of gather, additive, scatter");
  return set;
}

/// `function(rows, columns, numbers)`, a whole number that is not negative.
std::size_t size_by(const nb::object& function, const char* what, const Settings& settings, const Tensor& tensor) {
  const std::string who = PythonCodec::of(settings).who();
  return with_gil(who, [&] {
    const nb::object size = function(tensor.rows, tensor.columns, nb::tuple(nb::cast(settings.numbers)));
    std::size_t value = 0;
    if (!nb::try_cast(size, value))
      throw Misuse(fmt::format("{}: {} returned {}; allowed: a whole number of at least 0", who, what,
                               nb::cast<std::string>(nb::repr(size))));
    return value;
  });
}

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  const nb::object& function = PythonCodec::of(settings).wire_bytes_function();
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes +=
        function.is_none() ? tensor.values.count * sizeof(float) : size_by(function, "wire_bytes", settings, tensor);
  return bytes;
}

std::size_t kept_bytes(const Settings& settings, const Tensor& tensor, int /*ranks*/) {
  const nb::object& function = PythonCodec::of(settings).kept_function();
  return function.is_none() ? 0 : sizeof(float) * size_by(function, "kept", settings, tensor);
}

/// The arguments, for pickles; functions are pickled by name.
nb::tuple reduced(nb::handle self) {
  const auto& codec = *nb::inst_ptr<PythonCodec>(self);
  nb::dict given;
  given["name"] = codec.own_name();
  given["rounds"] = codec.rounds_function();
  given["combines"] = names_of(codec.combines);
  given["parameters"] = codec.numbers().given();
  given["feedback"] = name_of(codec.feedback);
  given["wire_bytes"] = codec.wire_bytes_function();
  given["kept"] = codec.kept_function();
  given["decode"] = codec.decode_function();
  return nb::make_tuple(nb::module_::import_("functools").attr("partial")(self.type(), **given), nb::tuple());
}

using Several = std::variant<std::string, std::vector<std::string>>;
std::vector<std::string> each_of(const Several& combines) {
  if (const auto* const one = std::get_if<std::string>(&combines)) return {*one};
  return std::get<std::vector<std::string>>(combines);
}

}  // namespace

PythonCodec::PythonCodec(std::string own_name, CodecFunctions functions, const std::vector<std::string>& ways,
                         std::vector<ComponentParameter> numbers, const std::string& use)
    : Component("codec", std::move(own_name),
                {std::move(functions.rounds), std::move(functions.wire_bytes), std::move(functions.kept),
                 std::move(functions.decode)}),
      numbers_(std::move(numbers)) {
  static_cast<compress::Codec&>(*this) = {.name = this->own_name(),
                                          .summary = "a codec of this program",
                                          .source = "Python",
                                          .combines = combines_named(ways),
                                          .parameter = numbers_.usual(),
                                          .parameters = numbers_.limits(),
                                          .decodes_alone = !decode_function().is_none(),
                                          .conversation = decode_function().is_none() ? "it has no `decode`" : "",
                                          .one_round = false,
                                          .feedback = use_named(use),
                                          .wire_bytes = bind::wire_bytes,
                                          .coder = python_coder,
                                          .kept_bytes = bind::kept_bytes};
  static_cast<void>(Catalogue().with(*this));  // its name and its parameters
}

void bind_codec(nb::module_& module) {
  nb::class_<PythonCodec>(module, "Codec", nb::type_slots(component_slots<PythonCodec>), nb::is_weak_referenceable(),
                          kDoc)
      .def(
          "__init__",
          [](PythonCodec* self, const std::string& name, const nb::callable& rounds, const Several& combines,
             const std::vector<ComponentParameter>& parameters, const std::string& feedback, const nb::object& bytes,
             const nb::object& kept, const nb::object& decode) {
            new (self) PythonCodec(name, {rounds, bytes, kept, decode}, each_of(combines), parameters, feedback);
          },
          "name"_a, "rounds"_a, nb::kw_only(), "combines"_a = "gather",
          "parameters"_a = std::vector<ComponentParameter>{}, "feedback"_a = "pointless", "wire_bytes"_a = nb::none(),
          "kept"_a = nb::none(), "decode"_a = nb::none())
      .def_prop_ro("name", &PythonCodec::own_name)
      .def("__reduce__", reduced)
      .def("__repr__", [](const PythonCodec& self) { return "Codec('" + self.own_name() + "')"; });
}

}  // namespace syncopate::bind
