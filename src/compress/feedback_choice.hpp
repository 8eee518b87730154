// The kind of feedback that a codec gets by name.
#pragma once

#include <string_view>

#include "compress/codec.hpp"

namespace syncopate::compress {

/// "none", "residual", "momentum", or "auto": residual with the codecs for which it is sound, else none. Throws Misuse
/// that says what is allowed with the codec, and why what was asked for is not.
[[nodiscard]] Feedback::Kind feedback_named(std::string_view name, const Codec& codec);

}  // namespace syncopate::compress
