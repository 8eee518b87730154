// Proposal: rank 0's description of the job and its plan; every rank compares it and adopts the partition.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sync/codec_state.hpp"
#include "sync/planning/planner.hpp"
#include "syncopate/error.hpp"
#include "syncopate/policy.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync::planning {

/// Rank 0's decisions before the first step.
struct AgreedPlan {
  PlannerOptions planner;
  schedule::Partition partition;  ///< of the first step; empty: the step decides
};

struct Proposal {
  std::vector<std::string> options;    ///< those that affect the result of a step, described
  std::vector<std::string> gradients;  ///< described
  AgreedPlan plan;
};

[[nodiscard]] Proposal proposal(const std::vector<Gradient>& gradients, const SynchronizerOptions& options,
                                const AgreedPlan& plan);

struct Difference {
  std::string what;
  std::optional<std::size_t> gradient;  ///< of this rank's
};
/// The first difference between what rank `rank` and rank 0 understand, with both values.
[[nodiscard]] std::optional<Difference> difference_of(const Proposal& own, const Proposal& theirs, int rank);

[[nodiscard]] std::string encode(const Proposal& proposal);
[[nodiscard]] std::string encode(const schedule::Partition& partition);
/// Both throw Corrupt. The partition may be an illegal one.
[[nodiscard]] Proposal decode_proposal(std::string_view text);
[[nodiscard]] schedule::Partition decode_partition(std::string_view text);

/// Returns rank 0's plan on every rank. Throws Mismatch naming the first difference from rank 0, with both values: an
/// option that affects the result, or a gradient; or rank 0's policy if this rank's catalogue lacks it.
[[nodiscard]] AgreedPlan agree(Group& group, const std::vector<Gradient>& gradients, const SynchronizerOptions& options,
                               const AgreedPlan& mine);
/// checked_settings, which throws Misuse. If this rank's catalogue lacks a name, it first takes part in `agree`, where
/// the ranks that have all names are, so that the difference is a Mismatch.
[[nodiscard]] std::vector<compress::Settings> compared_settings(Group& group, const std::vector<Gradient>& gradients,
                                                                const SynchronizerOptions& options);
/// Ends the construction of what exchanges by these options: as a refused call of the group, so that a rank whose
/// arguments are valid gets a Mismatch with the reason. Throws Misuse. Called by the handler of `misuse`.
[[noreturn]] void refuse(Group& group, std::string_view exchange, const Misuse& misuse);
/// Returns rank 0's partition on every rank; `mine` is used on rank 0 only.
[[nodiscard]] schedule::Partition agree(Group& group, std::size_t gradients, const schedule::Partition& mine);

}  // namespace syncopate::sync::planning
