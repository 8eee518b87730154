// The plan of a part's exchange (codec and costs), on which all ranks agree before the first step.
#pragma once

#include <string>

#include "network/network.hpp"
#include "options.hpp"
#include "run.hpp"
#include "syncopate/synchronizer.hpp"
#include "update/codec_choice.hpp"

namespace syncopate::train {

struct ExchangePlan {
  SynchronizerOptions options;  ///< without `weights` and `update`
  ChosenCodecs codecs;          ///< with --codec auto:...
  std::string refused_codec;    ///< the requested codec, if it is predicted to be slower; else empty
  bool corrected = false;       ///< gradients come with their momentum, and the optimizer adds none
};

/// Plans the exchange of a part with these options. With a cluster file it uses its costs: every bucket gets the
/// cheapest allowed codec, and no codec that is predicted to be slower, which rank 0 logs. A collective. Throws Misuse
/// if codec, exchange and algorithm do not fit.
[[nodiscard]] ExchangePlan plan_exchange(Run& run, const Network& network, const Options& options);

}  // namespace syncopate::train
