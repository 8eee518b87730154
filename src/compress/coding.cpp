// The coding of gradients: the table of its options, and the codec's settings that follow from them.
#include "compress/coding.hpp"

#include "base/tooling/setting_row.hpp"
#include "compress/feedback_choice.hpp"

namespace syncopate {

namespace {

using Allow = AllowedValues;
using Feedback = FeedbackOptions;

template <auto... kPath>
constexpr auto row = base::setting_row<CodingOptions, kPath...>;

constexpr Setting<CodingOptions> kSettings[] = {
    row<&CodingOptions::codec>("codec", "--codec", Allow::any(), "NAME or NAME:PARAMETER (`syncopate info codec`)",
                               "codec of gradients; `syncopate train` also takes auto:A+B"),
    {"feedback.kind", "--feedback", Allow::listed(), "auto, none, residual, momentum",
     "treatment of values that a codec leaves out: none, residual, momentum (accumulated before the selection), or "
     "auto (residual where it is sound)",
     [](const CodingOptions& options) { return std::string(name_of(options.feedback.kind)); },
     [](CodingOptions& options, std::string_view text) { options.feedback.kind = feedback_named(text); }},
    row<&CodingOptions::feedback, &Feedback::momentum>("feedback.momentum", "", Allow::real(0, 1), "above 0, below 1",
                                                       "feedback momentum: the factor"),
    row<&CodingOptions::feedback, &Feedback::nesterov>("feedback.nesterov", "", Allow::listed(), "true, false",
                                                       "feedback momentum: Nesterov's"),
    row<&CodingOptions::feedback, &Feedback::clip_norm>(
        "feedback.clip_norm", "--local-clip", Allow::real(0), "0 (any) or more",
        "with feedback: largest L2 norm of each coded gradient, before it is accumulated; 0: any"),
    row<&CodingOptions::feedback, &Feedback::warmup_density>(
        "feedback.warmup_density", "--warmup-density", Allow::real(0, 1), "0 (no warm-up) to 1",
        "sparse codecs: density of the first step; needs warm-up steps"),
    row<&CodingOptions::feedback, &Feedback::warmup_steps>("feedback.warmup_steps", "--warmup-steps", Allow::whole(0),
                                                           "0 (no warm-up) or more",
                                                           "steps until the density has fallen to the codec's own"),
    row<&CodingOptions::dense_below>("dense_below", "--dense-below", Allow::whole(0), "0 or more",
                                     "gradients with fewer elements are not encoded, unless the codec only rounds"),
    row<&CodingOptions::seed>("seed", "", Allow::whole(0, ~std::uint64_t{0}), "0 to 2^64 - 1",
                              "for codecs that use random numbers"),
};

}  // namespace

std::span<const Setting<CodingOptions>> coding_settings() { return kSettings; }

namespace compress {

Settings settings_of(const CodingOptions& options, const Catalogue& catalogue) {
  Settings settings = settings_of(options.codec, catalogue);
  settings.feedback = feedback_with(*settings.codec, options.feedback);
  settings.warmup = warmup_with(*settings.codec, options.feedback);
  settings.dense_below = options.dense_below;
  return settings;
}

}  // namespace compress

}  // namespace syncopate
