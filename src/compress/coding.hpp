// The settings of a codec that follow from the options of a user.
#pragma once

#include "compress/codec.hpp"
#include "syncopate/catalogue.hpp"
#include "syncopate/coding.hpp"

namespace syncopate::compress {

/// Throws Misuse for an unknown codec, a parameter out of range, and feedback or a warm-up that the codec does not
/// allow.
[[nodiscard]] Settings settings_of(const CodingOptions& options, const Catalogue& catalogue = {});

}  // namespace syncopate::compress
