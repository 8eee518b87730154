// Runs a Python generator as the coder of a codec: on threads of the library, with the GIL while Python runs.
#include <fmt/format.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <numeric>

#include "codec.hpp"
#include "conversation.hpp"
#include "signals.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::bind {

namespace {

using compress::Answer;
using compress::Combine;
using compress::Round;

/// The Python objects of one conversation. Destroyed with the GIL.
struct PythonObjects {
  PythonObjects() = default;
  ~PythonObjects() {
    for (const nb::object& tensor : tensors) nb::inst_ptr<CodecTensor>(tensor)->close();
  }
  PythonObjects(const PythonObjects&) = delete;
  PythonObjects& operator=(const PythonObjects&) = delete;

  std::vector<nb::object> tensors;  ///< CodecTensors
  nb::object generator;
};

const char* name_of(Combine combine) {
  return combine == Combine::gather ? "gather" : combine == Combine::additive ? "additive" : "scatter";
}

/// A new array. Throws Corrupt for a length that is not of whole elements.
nb::object array_of(std::span<const std::byte> bytes, nb::dlpack::dtype type = nb::dtype<std::uint8_t>()) {
  const std::size_t width = type.bits / 8U;
  if (width == 0 || bytes.size() % width != 0)
    throw Corrupt(fmt::format("a rank sent {} bytes, which are not elements of {} bytes as this rank's payload",
                              bytes.size(), width));
  auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::ranges::copy(bytes, copy.get());
  const nb::capsule owner(copy.get(), [](void* memory) noexcept { delete[] static_cast<std::byte*>(memory); });
  const std::size_t elements = bytes.size() / width;
  return nb::cast(nb::ndarray<nb::numpy>(copy.release(), 1, &elements, owner, nullptr, type));
}

/// The payload of a round, which outlives the Python objects that it was copied from.
class Payload final {
 public:
  [[nodiscard]] Round round(const PythonRound& yielded, std::size_t most_part_bytes) {
    type_ = yielded.parts.empty() ? nb::dtype<std::uint8_t>() : yielded.parts.front().dtype();
    lengths_.clear();
    for (const auto& part : yielded.parts) lengths_.push_back(part.nbytes());
    bytes_.resize(std::accumulate(lengths_.begin(), lengths_.end(), std::size_t{0}));
    std::byte* into = bytes_.data();
    for (const auto& part : yielded.parts) {
      if (part.nbytes() > 0) std::memcpy(into, part.data(), part.nbytes());
      into += part.nbytes();
    }
    Round round{.combine = yielded.combine, .payload = Buffer(bytes_.data(), bytes_.size(), DType::u8)};
    if (yielded.combine == Combine::additive) {
      const DType dtype = type_ == nb::dtype<double>() ? DType::f64 : DType::f32;
      round.payload = Buffer(bytes_.data(), bytes_.size() / size_of(dtype), dtype);
    }
    if (yielded.combine == Combine::scatter) {
      round.lengths = lengths_;
      round.own_lengths = true;
      round.most_bytes = most_part_bytes;
    }
    return round;
  }
  /// The averaged payload, or a list of arrays by rank. Throws Corrupt for a length that is not of whole elements.
  [[nodiscard]] nb::object answer(Combine combine, const Answer& answer) const {
    if (combine == Combine::additive) return array_of(bytes_, type_);
    nb::list arrays;
    for (const std::span<const std::byte> packet : answer.packets) arrays.append(array_of(packet, type_));
    return arrays;
  }
  [[nodiscard]] const std::vector<std::size_t>& lengths() const noexcept { return lengths_; }

 private:
  nb::dlpack::dtype type_{};
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> lengths_;
};

class GeneratorCoder final : public compress::Coder {
 public:
  explicit GeneratorCoder(compress::Settings settings)
      : settings_(std::move(settings)), codec_(PythonCodec::of(settings_)), who_(codec_.who()) {}

  [[nodiscard]] Round begin(std::span<const compress::Tensor> tensors, const compress::StepInfo& info,
                            std::span<std::byte> wire) override {
    most_part_bytes_ = wire.size();
    ranks_ = info.ranks;
    return with_gil(who_, [&] {
      objects_ = held(std::make_unique<PythonObjects>());
      for (const compress::Tensor& tensor : tensors)
        objects_->tensors.push_back(
            nb::cast(new CodecTensor(tensor, settings_.feedback), nb::rv_policy::take_ownership));
      nb::list list;
      for (const nb::object& tensor : objects_->tensors) list.append(tensor);
      objects_->generator = codec_.rounds_function()(list, CodecStep{info, settings_.numbers});
      if (!nb::isinstance(objects_->generator, nb::module_::import_("types").attr("GeneratorType")))
        throw Misuse(fmt::format("{} returned {}; allowed: a generator, from a function that yields rounds", who_,
                                 nb::cast<std::string>(nb::repr(objects_->generator.type()))));
      if (auto round = go_on(nb::none())) return codec_.decodes_alone ? alone(*std::move(round), wire) : *round;
      throw Misuse(fmt::format("{} yielded no round; allowed: one or more, equal on all ranks", who_));
    });
  }

  [[nodiscard]] std::optional<Round> next(Answer answer) override {
    return with_gil(who_, [&]() -> std::optional<Round> {
      auto round = go_on(payload_.answer(combine_, answer));
      if (!round) end();
      return round;
    });
  }

  /// Another thread's conversation does not change: decoding uses no state.
  void add(std::span<const std::byte> packet, std::span<float> into) const override {
    if (!codec_.decodes_alone) return compress::Coder::add(packet, into);
    with_gil(who_, [&] {
      const nb::object decoded =
          codec_.decode_function()(array_of(packet), into.size(), nb::tuple(nb::cast(settings_.numbers)));
      Decoded values;
      if (!nb::try_cast(decoded, values) || values.size() != into.size())
        throw Misuse(fmt::format("{}: decode returned {}; allowed: an array of {} float32", who_,
                                 nb::cast<std::string>(nb::repr(decoded)), into.size()));
      for (std::size_t i = 0; i < into.size(); ++i) into[i] += values.data()[i];
    });
  }

 private:
  using Decoded = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

  /// A parameter server's worker has no further round, and keeps the packet in `wire`.
  [[nodiscard]] Round alone(Round round, std::span<std::byte> wire) const {
    for (const nb::object& tensor : objects_->tensors) nb::inst_ptr<CodecTensor>(tensor)->require_sent(who_);
    const std::span<const std::byte> packet = round.payload.bytes();
    if (round.combine != Combine::gather || packet.size() > wire.size())
      throw Misuse(
          fmt::format("{} has decode, and yielded {} bytes in a round of kind {}; allowed: at most {} bytes, by "
                      "its wire_bytes, of kind gather",
                      who_, packet.size(), name_of(round.combine), wire.size()));
    std::ranges::copy(packet, wire.begin());
    round.payload = Buffer(wire.data(), packet.size(), DType::u8);
    return round;
  }

  /// Sends the generator a value; returns its next round, or nullopt if it has returned.
  [[nodiscard]] std::optional<Round> go_on(const nb::object& value) {
    PyObject* result = nullptr;
    const PySendResult sent = PyIter_Send(objects_->generator.ptr(), value.ptr(), &result);
    if (sent == PYGEN_ERROR) nb::raise_python_error();
    const nb::object yielded = nb::steal(result);
    if (sent == PYGEN_RETURN) return std::nullopt;
    if (!nb::isinstance<PythonRound>(yielded))
      throw Misuse(fmt::format("{} yielded {}; allowed: syncopate.gather(…), additive(…) or scatter(…)", who_,
                               nb::cast<std::string>(nb::repr(yielded.type()))));
    return checked(*nb::inst_ptr<PythonRound>(yielded));
  }

  [[nodiscard]] Round checked(const PythonRound& yielded) {
    combine_ = yielded.combine;
    const compress::CombineSet one{.additive = combine_ == Combine::additive,
                                   .gather = combine_ == Combine::gather,
                                   .scatter = combine_ == Combine::scatter};
    if (!codec_.combines.includes(one))
      throw Misuse(fmt::format("{0} yielded a round of kind {1}, which its `combines` lacks; add '{1}' to it", who_,
                               name_of(combine_)));
    Round round = payload_.round(yielded, most_part_bytes_);
    if (combine_ != Combine::scatter) return round;
    if (payload_.lengths().size() != static_cast<std::size_t>(ranks_))
      throw Misuse(fmt::format("{} scattered {} parts to {} ranks; allowed: one part for each rank", who_,
                               payload_.lengths().size(), ranks_));
    for (const std::size_t length : payload_.lengths())
      if (length > most_part_bytes_)
        throw Misuse(fmt::format("{} scattered a part of {} bytes; allowed: {}, by its wire_bytes", who_, length,
                                 most_part_bytes_));
    return round;
  }

  void end() {
    const std::shared_ptr<PythonObjects> ended = std::move(objects_);
    ended->generator.reset();
    for (const nb::object& tensor : ended->tensors) nb::inst_ptr<CodecTensor>(tensor)->end(who_);
  }

  const compress::Settings settings_;
  const PythonCodec& codec_;
  const std::string who_;
  std::shared_ptr<PythonObjects> objects_;  ///< released with the GIL
  Payload payload_;
  Combine combine_ = Combine::gather;
  std::size_t most_part_bytes_ = 0;
  int ranks_ = 1;
};

}  // namespace

std::unique_ptr<compress::Coder> python_coder(const compress::Settings& settings) {
  return std::make_unique<GeneratorCoder>(settings);
}

}  // namespace syncopate::bind
