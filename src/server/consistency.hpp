// Consistency: an entry of the shelf consistency/: how old the weights may be that a worker computes with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace syncopate::server {

/// A clock counts steps that were ended. A worker at clock c has ended the steps 0 to c - 1 and computes step c.
using Clock = std::int64_t;

/// What is known about one shard when something is decided.
struct Moment {
  Clock own = 0;      ///< of the worker
  Clock least = 0;    ///< the server has every update of all workers' first `least` steps
  Clock fetched = 0;  ///< `least` of the server when it sent the worker's copy
  Clock wanted = 0;   ///< another worker waits for all updates of the first `wanted` steps
  Clock sent = 0;     ///< the server has this worker's updates of its first `sent` steps
  /// Size of the update that the worker has added up and not yet sent, over the size of the weights.
  double significance = 0;
};

/// What a model promises and how eager it is. The functions below are the same for every rule, and so are their laws:
/// with any `travels_early`, a worker at clock c computes with all updates of everybody's first c - staleness steps,
/// and of all its own (read my writes); no worker waits for ever while the others go on computing.
struct Rule {
  std::optional<Clock> staleness = 0;  ///< s; nothing: unbounded
  /// Whether an accumulated update travels although nobody has to have it yet. Null: it does not.
  std::function<bool(const Moment&)> travels_early{};
};

/// The worker's copy is too old for its next step: it waits for another. (fetched < own - s)
[[nodiscard]] bool must_fetch(const Rule& rule, const Moment& moment) noexcept;
/// The server may answer a worker that must fetch; until then it holds the answer. (least >= own - s)
[[nodiscard]] bool may_go_on(const Rule& rule, const Moment& moment) noexcept;
/// The accumulated update is sent at the end of a step, and weights are asked for in exchange: at the latest when the
/// worker itself must fetch, or when another waits for what it holds back.
[[nodiscard]] bool travels(const Rule& rule, const Moment& moment);

struct Consistency {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::string_view parameter{};  ///< default of PARAMETER in `name:PARAMETER`; empty: it takes none
  /// Throws Misuse for a parameter that is not allowed.
  Rule (*rule)(std::string_view parameter);
};

/// Every consistency model, by name (generated from the folder consistency/).
[[nodiscard]] std::span<const Consistency* const> consistencies();
/// Parses `name` or `name:parameter`. Throws Misuse that lists the models, or names the parameter and what is allowed.
[[nodiscard]] Rule rule_of(std::string_view text);

}  // namespace syncopate::server
