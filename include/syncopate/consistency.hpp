// Consistency: the allowed age of the weights that a parameter server's worker computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "syncopate/hook.hpp"
#include "syncopate/parameter.hpp"

namespace syncopate::server {

/// A clock counts ended steps. A worker at clock c has ended the steps 0 to c - 1 and computes step c.
using Clock = std::int64_t;

/// A worker's copy of one shard, when the worker decides whether to wait and to send.
struct ClockView {
  Clock own = 0;      ///< of the worker
  Clock least = 0;    ///< the server has every update of all workers' first `least` steps
  Clock fetched = 0;  ///< `least` of the server when it sent the worker's copy
  Clock allowed = 0;  ///< Rule::last_step of the server when it sent the worker's copy; 0: the rule has none
  Clock wanted = 0;   ///< another worker waits for all updates of the first `wanted` steps
  Clock sent = 0;     ///< the server has this worker's whole updates of its first `sent` steps
  /// Size of the update that the worker has accumulated and not sent yet, over the size of the weights.
  double significance = 0;
  /// Rule::sees_clocks: the clocks of all workers on the server when it sent the worker's copy; of one that does not
  /// take part, its last one. Empty: not known.
  std::span<const Clock> clocks{};
};

/// The pace of a worker's updates of one shard, by its server's clock.
struct Pace {
  double pushed_s = 0;  ///< when the last update came, since an arbitrary time
  double step_s = 0;    ///< seconds per step from the server's last answer to that update; 0: not measured
};

/// One shard on its server, when the server decides whether a worker may go on.
struct ServerView {
  std::span<const Clock> clocks;  ///< of every worker that takes part: the steps whose updates are here
  std::size_t worker = 0;         ///< the index of its clock among them
  std::span<const Pace> paces{};  ///< of the same workers; on a server that was replaced, since then
  Clock least = 0;                ///< the smallest of them
  std::size_t table = 0;          ///< in the order of their creation
};

/// The guarantee of a model, and the steps that it allows beyond it. Laws: a worker at clock c waits until the server
/// has all updates of every worker's first c - staleness steps, or `last_step` allows step c; with or without other
/// hooks it computes with all its own updates (read my writes); no worker waits forever while the others continue to
/// compute.
struct Rule {
  std::optional<Clock> staleness = 0;  ///< s; empty: unbounded
  /// Whether an accumulated update is sent before any worker requires it. Null: it is not.
  std::function<bool(const ClockView&)> travels_early{};
  /// The last step that the worker may compute with the present weights, beyond least + s. Null: none beyond. With it
  /// servers apply each update on arrival, also if s is 0. Called on the server's threads, under a lock.
  std::function<Clock(const ServerView&)> last_step{};
  /// Chooses what of an update travels early: copies elements of `update`, the accumulated one, to `sent`, which is 0.
  /// The worker accumulates the rest. When a worker requires the update, all of it is sent. Null: so it is here.
  /// `weights`: the worker's. Given together with `travels_early`.
  std::function<void(const ClockView&, std::span<const float> weights, std::span<const float> update,
                     std::span<float> sent)>
      part{};
  /// Whether a server sends the worker its weights without a request, now that they have changed since it last sent
  /// them. Until the worker has them it sends no others. Called as `last_step`. Null: it does not.
  std::function<bool(const ServerView&)> sends_unasked{};
  /// Whether servers send all clocks with the weights, for ClockView::clocks.
  bool sees_clocks = false;
};

/// An entry of a catalogue. `rule` gets the numbers of `name:PARAMETER`, within the limits of `parameters`.
struct Consistency {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::string_view parameter{};             ///< default of PARAMETER in `name:PARAMETER`; empty: it takes no parameter
  std::span<const Parameter> parameters{};  ///< numbers in it, separated by commas
  Hook<Rule(std::span<const double> numbers)> rule;
};

}  // namespace syncopate::server
