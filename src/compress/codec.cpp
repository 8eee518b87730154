// Codecs by name and parameter.
#include "compress/codec.hpp"

#include "kernel/select.hpp"
#include "syncopate/codec_feedback.hpp"

namespace syncopate {

std::vector<const compress::Codec*> Catalogue::codecs() const { return base::joined(compress::codecs(), codecs_); }

Catalogue Catalogue::with(const compress::Codec& mine) const {
  Catalogue more = *this;
  base::add_entry<compress::Codec>("codec", more.codecs_, mine, codecs());
  base::require(mine.wire_bytes != nullptr && mine.coder != nullptr,
                "codec {} lacks a function; allowed: with wire_bytes and coder", mine.name);
  base::shelf::require_usual({"codec", mine.name, mine.parameter, mine.parameter}, mine.parameters);
  return more;
}

}  // namespace syncopate

namespace syncopate::compress {

namespace {

/// Sends gradients uncoded and replaces their average g with the momentum: u' = fl(fl(m u) + g), or for Nesterov
/// fl(g + fl(m u')). All ranks compute the same bits, so the state is equal on all ranks.
class MomentumAfterwards final : public Coder {
 public:
  explicit MomentumAfterwards(const Feedback& feedback)
      : feedback_(feedback), plain_(settings_of("none").codec->coder(settings_of("none"))) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    return plain_->begin(tensors, info, wire);
  }

  [[nodiscard]] std::optional<Round> next(Answer answer) override {
    if (auto round = plain_->next(answer)) return round;
    for (const Tensor& tensor : tensors_) {
      auto* const values = static_cast<float*>(tensor.values.data);
      const auto* const before = reinterpret_cast<const float*>(tensor.kept.data());
      auto* const after = reinterpret_cast<float*>(tensor.next.data());
      for (std::size_t i = 0; i < tensor.values.count; ++i) {
        after[i] = feedback_.momentum * before[i] + values[i];
        values[i] = feedback_.nesterov ? values[i] + feedback_.momentum * after[i] : after[i];
      }
    }
    return std::nullopt;
  }

 private:
  const Feedback feedback_;
  const std::unique_ptr<Coder> plain_;
  std::span<const Tensor> tensors_;
};

bool has_momentum(const Settings& settings) { return settings.feedback.kind == Feedback::Kind::momentum; }

}  // namespace

void Coder::add(base::ConstBytes /*packet*/, std::span<float> /*into*/) const {
  throw Misuse("packets of this codec cannot be decoded without another round");
}

void Coder::add_selected(base::ConstBytes /*payload*/, const Selected& /*selected*/, std::span<float> /*into*/) const {
  throw Misuse("payloads of this codec do not select the same elements on all ranks");
}

bool has_packets_alone(const Codec& codec) {
  return codec.decodes_alone || codec.selects_alike || codec.coder_alone != nullptr;
}

std::unique_ptr<Coder> packet_coder_of(const Settings& settings) {
  const Codec& codec = *settings.codec;
  return (codec.coder_alone != nullptr ? codec.coder_alone : codec.coder)(settings);
}

void add_packet(const Settings& settings, const Coder& coder, base::ConstBytes packet, const Selected& selected,
                std::span<float> into) {
  if (settings.codec->selects_alike) return coder.add_selected(packet, selected, into);
  coder.add(packet, into);
}

std::string text_of(const Settings& settings) {
  const Codec& codec = *settings.codec;
  std::string text =
      settings.parameter.empty() ? std::string(codec.name) : fmt::format("{}:{}", codec.name, settings.parameter);
  if (settings.feedback.kind != Feedback::Kind::none) text += ", feedback " + text_of(settings.feedback);
  if (settings.warmup.steps > 0)
    text += fmt::format(", from density {} in {} steps", settings.warmup.density, settings.warmup.steps);
  if (codec.feedback != FeedbackUse::pointless) text += fmt::format(", dense below {} elements", settings.dense_below);
  return text;
}

std::string owner_of(const Settings& settings) {
  const Feedback::Kind kind = settings.feedback.kind;
  std::string text(settings.codec->name);
  if (kind != Feedback::Kind::none)
    text += kind == Feedback::Kind::residual ? ", feedback residual" : ", feedback momentum";
  if (settings.codec->feedback != FeedbackUse::pointless)
    text += fmt::format(", dense below {} elements", settings.dense_below);
  return text;
}

bool is_coded(const Settings& settings, const Tensor& whole) {
  if (settings.codec->codes != nullptr && !settings.codec->codes(settings, whole)) return false;
  return settings.codec->feedback == FeedbackUse::pointless || whole.values.count >= settings.dense_below;
}

std::size_t state_bytes(const Settings& settings, const Tensor& tensor, bool coded, int ranks) {
  if (!coded) return has_momentum(settings) ? tensor.values.count * sizeof(float) : 0;
  const auto own = settings.codec->kept_bytes;
  return (own == nullptr ? 0 : own(settings, tensor, ranks)) + feedback_bytes(settings.feedback, tensor);
}

bool has_state(const Settings& settings) {
  return settings.codec->kept_bytes != nullptr || settings.feedback.kind != Feedback::Kind::none;
}

bool is_finite(const Settings& settings, const Tensor& tensor, bool coded) {
  const auto is_finite = [](const void* elements, std::size_t count) {
    return kernel::largest_magnitude(static_cast<const float*>(elements), count) < kernel::kNotFinite;
  };
  if (tensor.values.dtype == DType::f32 && !is_finite(tensor.values.data, tensor.values.count)) return false;
  const auto kept = tensor.next.last(coded ? feedback_bytes(settings.feedback, tensor) : 0);
  return is_finite(kept.data(), kept.size() / sizeof(float));
}

std::unique_ptr<Coder> coder_of(const Settings& settings, bool coded) {
  if (coded) return settings.codec->coder(settings);
  if (has_momentum(settings)) return std::make_unique<MomentumAfterwards>(settings.feedback);
  const Settings plain = settings_of("none");
  return plain.codec->coder(plain);
}

std::size_t wire_bytes_of(const Settings& settings, std::span<const Tensor> tensors, bool coded) {
  const Settings plain = settings_of("none");
  return (coded ? settings : plain).codec->wire_bytes(coded ? settings : plain, tensors);
}

Settings settings_of(std::string_view text, const Catalogue& catalogue) {
  auto [codec, parameter] = base::shelf::entry_and_parameter<Codec>("codec", text, catalogue.codecs());
  Settings settings{codec, std::move(parameter)};
  settings.numbers =
      base::shelf::numbers_of({"codec", codec->name, settings.parameter, codec->parameter}, codec->parameters);
  return settings;
}

std::vector<RoundBytes> rounds_of(const Settings& settings, std::span<const Tensor> tensors) {
  const Codec& codec = *settings.codec;
  if (codec.rounds != nullptr) return codec.rounds(settings, tensors);
  const auto bytes = static_cast<double>(codec.wire_bytes(settings, tensors));
  // All gathered parts together have the size of one payload.
  if (codec.combines.scatter) return {{Combine::scatter, bytes}, {Combine::gather, bytes, 1}};
  return {{codec.combines.additive ? Combine::additive : Combine::gather, bytes}};
}

DType coding_type(const Settings& settings, DType dtype, bool coded) {
  const bool is_taken = coded ? settings.codec->takes(dtype) : !has_momentum(settings);
  const bool is_half = dtype == DType::f16 || dtype == DType::bf16;
  return !is_taken && is_half && settings.codec->takes(DType::f32) ? DType::f32 : dtype;
}

void require_taken(const Settings& settings, std::string_view gradient, DType dtype) {
  const auto takes = [&](DType type) { return settings.codec->takes(coding_type(settings, type, true)); };
  if (takes(dtype)) return;
  std::vector<std::string_view> types;
  for (const DType type : kDTypes)
    if (takes(type)) types.push_back(name_of(type));
  throw Misuse(fmt::format("codec {} does not take gradient '{}' of type {}; allowed: {}", settings.codec->name,
                           gradient, name_of(dtype), fmt::join(types, ", ")),
               {.tensor = std::string(gradient)});
}

}  // namespace syncopate::compress
