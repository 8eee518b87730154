// Consistency: the allowed age of the weights that a parameter server's worker computes with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "syncopate/parameter.hpp"

namespace syncopate::server {

/// A clock counts ended steps. A worker at clock c has ended the steps 0 to c - 1 and computes step c.
using Clock = std::int64_t;

/// State of one shard at the time of a decision.
struct ClockView {
  Clock own = 0;      ///< of the worker
  Clock least = 0;    ///< the server has every update of all workers' first `least` steps
  Clock fetched = 0;  ///< `least` of the server when it sent the worker's copy
  Clock wanted = 0;   ///< another worker waits for all updates of the first `wanted` steps
  Clock sent = 0;     ///< the server has this worker's updates of its first `sent` steps
  /// Size of the update that the worker has accumulated and not sent yet, over the size of the weights.
  double significance = 0;
};

/// A model's guarantee, and how eagerly it sends. Laws: with any `travels_early`, a worker at clock c computes with all
/// updates of every worker's first c - staleness steps, and with all its own (read my writes); no worker waits forever
/// while the others continue to compute.
struct Rule {
  std::optional<Clock> staleness = 0;  ///< s; empty: unbounded
  /// Whether an accumulated update is sent before any worker requires it. Null: it is not.
  std::function<bool(const ClockView&)> travels_early{};
};

/// An entry of a catalogue. `rule` gets the numbers of `name:PARAMETER`, within the limits of `parameters`.
struct Consistency {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::string_view parameter{};             ///< default of PARAMETER in `name:PARAMETER`; empty: it takes no parameter
  std::span<const Parameter> parameters{};  ///< numbers in it, separated by commas
  Rule (*rule)(std::span<const double> numbers);
};

}  // namespace syncopate::server
