// Consistency: an entry of the shelf consistency/: the allowed age of the weights that a worker computes with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

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

/// A model's guarantee, and how eagerly it sends. The functions below are the same for every rule, and so are their
/// laws: with any `travels_early`, a worker at clock c computes with all updates of every worker's first c - staleness
/// steps, and with all its own (read my writes); no worker waits forever while the others continue to compute.
struct Rule {
  std::optional<Clock> staleness = 0;  ///< s; empty: unbounded
  /// Whether an accumulated update is sent before any worker requires it. Null: it is not.
  std::function<bool(const ClockView&)> travels_early{};
};

/// The worker's copy is too old for its next step, so it waits for another. (fetched < own - s)
[[nodiscard]] bool must_fetch(const Rule& rule, const ClockView& clocks) noexcept;
/// The server may answer a worker that must fetch; until then it holds the answer. (least >= own - s)
[[nodiscard]] bool may_go_on(const Rule& rule, const ClockView& clocks) noexcept;
/// Whether the worker sends its accumulated update at the end of a step, and requests the weights in the same message:
/// at the latest when it must fetch, or when another worker waits for the withheld updates.
[[nodiscard]] bool travels(const Rule& rule, const ClockView& clocks);

struct Consistency {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::string_view parameter{};  ///< default of PARAMETER in `name:PARAMETER`; empty: it takes no parameter
  /// Throws Misuse for a parameter outside the allowed values.
  Rule (*rule)(std::string_view parameter);
};

/// Every consistency model, by name (generated from the folder consistency/).
[[nodiscard]] std::span<const Consistency* const> consistencies();
/// Parses `name` or `name:parameter`. Throws Misuse that lists the models, or names the parameter and the allowed
/// values.
[[nodiscard]] Rule rule_of(std::string_view text);

}  // namespace syncopate::server
