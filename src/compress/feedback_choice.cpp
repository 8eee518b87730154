// Feedback choice: the kinds that each codec allows, and the reasons in error messages.
#include "compress/feedback_choice.hpp"

#include "base/require.hpp"

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

Feedback::Kind feedback_named(std::string_view name, const Codec& codec) {
  const bool has_residual = codec.feedback == FeedbackUse::sound || codec.feedback == FeedbackUse::maskable;
  if (name == "auto") return has_residual ? Feedback::Kind::residual : Feedback::Kind::none;
  if (name == "none") return Feedback::Kind::none;
  if (name == "residual" && has_residual) return Feedback::Kind::residual;
  if (name == "momentum" && codec.feedback == FeedbackUse::maskable) return Feedback::Kind::momentum;
  base::require(name != "residual" && name != "momentum", "feedback {} with codec {}: {}; allowed: {}", name,
                codec.name, reason(codec.feedback), allowed_with(codec.feedback));
  throw Misuse(fmt::format("feedback '{}' is unknown; allowed with codec {}: {}", name, codec.name,
                           allowed_with(codec.feedback)));
}

}  // namespace syncopate::compress
