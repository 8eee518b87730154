// Candidate: a policy with the options of its label; and a profile as a timeline.
#pragma once

#include <string>

#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"
#include "syncopate/predict.hpp"

namespace syncopate::simulate {

struct Candidate {
  const schedule::Policy* policy = nullptr;
  schedule::PolicyOptions options;

  /// Whether the policy decides during the step, so that ranks agree before each bucket.
  [[nodiscard]] bool decides_late() const { return policy->needs == schedule::Needs::events; }
  [[nodiscard]] schedule::Partition partition(const schedule::Timeline& timeline, const schedule::Cost& cost) const;
};

/// Parses "online", "fusion", "fusion:64MiB", "fusion:ddp". Throws Misuse.
[[nodiscard]] Candidate candidate_of(const std::string& label, const schedule::PolicyOptions& options,
                                     const Catalogue& catalogue = {});
/// Throws Misuse if the profile has no layers.
[[nodiscard]] schedule::Timeline timeline_of(const Profile& profile);

}  // namespace syncopate::simulate
