// Feedback choice: the kinds that each codec allows, and the reasons in error messages.
#include "compress/feedback_choice.hpp"

#include <fmt/format.h>

#include "base/named.hpp"
#include "base/require.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kNames[] = {"auto", "none", "residual", "momentum"};
}

std::string_view name_of(FeedbackKind kind) noexcept { return kNames[static_cast<int>(kind)]; }
FeedbackKind feedback_named(std::string_view name) { return base::value_named<FeedbackKind>("feedback", name, kNames); }

}  // namespace syncopate

namespace syncopate::compress {

namespace {

const char* allowed_with(FeedbackUse use) {
  switch (use) {
    case FeedbackUse::sound:
      return "auto, none, residual";
    case FeedbackUse::maskable:
      return "auto, none, residual, momentum";
    default:
      return "auto, none";
  }
}

/// Why a codec does not allow residual (or momentum) feedback.
const char* reason(FeedbackUse use) {
  if (use == FeedbackUse::pointless) return "its only loss is rounding";
  if (use == FeedbackUse::unsound) return "it is unbiased but not contractive, so residuals may grow without bound";
  return "its packets do not list the elements that they contain";
}

}  // namespace

Feedback::Kind feedback_with(const Codec& codec, FeedbackKind kind) {
  const bool has_residual = codec.feedback == FeedbackUse::sound || codec.feedback == FeedbackUse::maskable;
  if (kind == FeedbackKind::automatic) return has_residual ? Feedback::Kind::residual : Feedback::Kind::none;
  if (kind == FeedbackKind::none) return Feedback::Kind::none;
  if (kind == FeedbackKind::residual && has_residual) return Feedback::Kind::residual;
  if (kind == FeedbackKind::momentum && codec.feedback == FeedbackUse::maskable) return Feedback::Kind::momentum;
  throw Misuse(fmt::format("feedback {} with codec {}: {}; allowed: {}", name_of(kind), codec.name,
                           reason(codec.feedback), allowed_with(codec.feedback)));
}

Feedback feedback_with(const Codec& codec, const FeedbackOptions& options) {
  Feedback feedback{.kind = feedback_with(codec, options.kind)};
  if (feedback.kind == Feedback::Kind::momentum) {
    base::require(options.momentum > 0 && options.momentum < 1, "momentum is {}; allowed: above 0, below 1",
                  options.momentum);
    feedback.momentum = static_cast<float>(options.momentum);
    feedback.nesterov = options.nesterov;
  }
  base::require(options.clip_norm >= 0, "local clipping to {}; allowed: 0 (off) and more", options.clip_norm);
  base::require(options.clip_norm == 0 || feedback.kind != Feedback::Kind::none,
                "local clipping to {} without feedback; allowed: with feedback residual or momentum",
                options.clip_norm);
  feedback.clip_norm = options.clip_norm;
  return feedback;
}

Warmup warmup_with(const Codec& codec, const FeedbackOptions& options) {
  base::require(options.warmup_density >= 0 && options.warmup_density <= 1 &&
                    (options.warmup_density > 0) == (options.warmup_steps > 0),
                "warm-up from density {} in {} steps; allowed: a density above 0, at most 1, and steps; or neither",
                options.warmup_density, options.warmup_steps);
  base::require(options.warmup_steps == 0 || codec.warms_up,
                "warm-up with codec {}, which has no density; allowed: without warm-up", codec.name);
  return {options.warmup_density, options.warmup_steps};
}

}  // namespace syncopate::compress
