// Which feedback is allowed with which codec, and why others are not.
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

/// Why residuals are no use to a codec.
const char* reason(FeedbackUse use) {
  if (use == FeedbackUse::pointless) return "it leaves nothing out but rounding";
  if (use == FeedbackUse::unsound)
    return "it is unbiased but not contractive, so that residuals may grow without bound";
  return "its packets do not say which elements they have";
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
