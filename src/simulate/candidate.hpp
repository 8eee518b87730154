// Candidate: a policy with its options, as a label names it, and the timeline that it decides on.
#pragma once

#include <string>

#include "schedule/evaluate.hpp"
#include "schedule/policy.hpp"
#include "syncopate/predict.hpp"

namespace syncopate::simulate {

struct Candidate {
  const schedule::Policy* policy = nullptr;
  schedule::PolicyOptions options;

  /// It decides while a step runs: ranks agree before each bucket.
  [[nodiscard]] bool decides_late() const { return policy->needs == schedule::Needs::events; }
  [[nodiscard]] schedule::Partition partition(const schedule::Timeline& timeline, const schedule::Cost& cost) const;
};

/// "online", "fusion", "fusion:64MiB", "fusion:ddp". Throws Misuse.
[[nodiscard]] Candidate candidate_of(const std::string& label, const schedule::PolicyOptions& options);
/// Throws Misuse where the profile has no layers.
[[nodiscard]] schedule::Timeline timeline_of(const Profile& profile);

}  // namespace syncopate::simulate
