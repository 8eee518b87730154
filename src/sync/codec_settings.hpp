// The codec's settings as the options of a synchronizer say them.
#pragma once

#include "compress/codec.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// Throws Misuse for unknown names, and for feedback that is not sound for the codec or has values out of range.
[[nodiscard]] compress::Settings codec_settings(const SynchronizerOptions& options);

}  // namespace syncopate::sync
