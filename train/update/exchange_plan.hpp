// What the exchange of a part of the training does, as all ranks agree on it before the first step: codec and costs.
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

/// What all parts of a training share. All of it outlives them.
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
  std::string refused_codec;    ///< it was asked for, and is predicted to lose; else empty
  bool corrected = false;       ///< gradients come with their momentum, and the optimizer adds none
};

/// With a cluster file, its costs: for every bucket the cheapest codec of those that are allowed, and no codec that is
/// predicted to lose, which rank 0 says. A collective. Throws Misuse where codec, exchange and algorithm do not fit.
[[nodiscard]] ExchangePlan plan_exchange(const RunContext& run, const Options& options);

}  // namespace syncopate::train
