// The codec's settings that follow from the options of a synchronizer.
#pragma once

#include "compress/codec.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// Throws Misuse for unknown names, and for feedback that is not sound for the codec or has values out of range.
[[nodiscard]] compress::Settings codec_settings(const SynchronizerOptions& options);

/// The settings of every gradient: its own codec, or that of the options.
[[nodiscard]] std::vector<compress::Settings> codec_settings(const SynchronizerOptions& options,
                                                             std::span<const Gradient> gradients);
/// Checked against the exchange and every gradient too, so that errors appear before the first step.
[[nodiscard]] std::vector<compress::Settings> checked_settings(const std::vector<Gradient>& gradients,
                                                               const SynchronizerOptions& options);
/// One codec's text; of several "A x3, B x2": how many gradients in forward order have which.
[[nodiscard]] std::string text_of(std::span<const compress::Settings> settings);

}  // namespace syncopate::sync
