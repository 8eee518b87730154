// Feedback choice: parses the kind of feedback and checks it against the codec.
#pragma once

#include <string_view>

#include "compress/codec.hpp"

namespace syncopate::compress {

/// Parses "none", "residual", "momentum" or "auto" (residual if it is sound with the codec, else none). Throws Misuse
/// with the allowed kinds and the reason if the codec does not allow `name`.
[[nodiscard]] Feedback::Kind feedback_named(std::string_view name, const Codec& codec);

}  // namespace syncopate::compress
