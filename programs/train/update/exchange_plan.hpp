// The plan of a part's exchange (codec and costs), on which all ranks agree before the first step.
#pragma once

#include <string>

#include "model.hpp"
#include "network/network.hpp"
#include "options.hpp"
#include "record/output.hpp"
#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"
#include "syncopate/trace.hpp"
#include "update/codec_choice.hpp"
#include "update/served.hpp"

namespace syncopate::train {

/// Context that all parts of a training share. All of it outlives them.
struct RunContext {
  Group& group;
  const Place& place;
  const Model& model;
  const Network& network;
  Trace& trace;
  Output& output;
};

struct ExchangePlan {
  SynchronizerOptions options;  ///< without `weights` and `update`
  ChosenCodecs codecs;          ///< with --codec auto:...
  std::string refused_codec;    ///< the requested codec, if it is predicted to be slower; else empty
  bool corrected = false;       ///< gradients come with their momentum, and the optimizer adds none
};

/// Plans the exchange. With a cluster file it uses its costs: every bucket gets the cheapest allowed codec, and no
/// codec that is predicted to be slower, which rank 0 logs. A collective. Throws Misuse if codec, exchange and
/// algorithm do not fit.
[[nodiscard]] ExchangePlan plan_exchange(const RunContext& run, const Options& options);

}  // namespace syncopate::train
