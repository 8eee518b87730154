// Feedback choice: the feedback that a codec gets for the kind in the options.
#pragma once

#include "compress/codec.hpp"
#include "syncopate/feedback.hpp"

namespace syncopate::compress {

/// The feedback of a codec for which `kind` is set. Throws Misuse with the allowed kinds and the reason if the codec
/// does not allow it.
[[nodiscard]] Feedback::Kind feedback_with(const Codec& codec, FeedbackKind kind);

}  // namespace syncopate::compress
