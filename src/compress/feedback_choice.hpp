// Feedback choice: the feedback and the warm-up that a codec gets for the options.
#pragma once

#include "compress/codec.hpp"
#include "syncopate/feedback.hpp"

namespace syncopate::compress {

/// The feedback of a codec for which `kind` is set. Throws Misuse with the allowed kinds and the reason if the codec
/// does not allow it.
[[nodiscard]] Feedback::Kind feedback_with(const Codec& codec, FeedbackKind kind);
/// Throws Misuse as feedback_with does, and for a momentum or a limit out of range.
[[nodiscard]] Feedback feedback_with(const Codec& codec, const FeedbackOptions& options);
/// Throws Misuse for a warm-up out of range, or of a codec without a density.
[[nodiscard]] Warmup warmup_with(const Codec& codec, const FeedbackOptions& options);

}  // namespace syncopate::compress
