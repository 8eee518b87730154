// Candidate: parses labels.
#include "simulate/candidate.hpp"

#include <fmt/format.h>

#include "base/require.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::simulate {

schedule::Partition Candidate::partition(const schedule::Timeline& timeline, const schedule::Cost& cost) const {
  schedule::PolicyOptions with_cost = options;
  with_cost.cost = cost;
  return partition_by(*policy, timeline, with_cost);
}

Candidate candidate_of(const std::string& label, const schedule::PolicyOptions& options, const Catalogue& catalogue) {
  const std::size_t colon = label.find(':');
  Candidate candidate{&schedule::policy_named(label.substr(0, colon), catalogue), options};
  if (colon != std::string::npos) {
    base::require(candidate.policy->name == "fusion", "policy '{}': only fusion takes a size, as in fusion:64MiB",
                  label);
    const std::string size = label.substr(colon + 1);
    if (size == "ddp")
      candidate.options = {.fusion_bytes = 25 << 20, .first_fusion_bytes = 1 << 20, .fuses_past = true};
    else
      candidate.options.fusion_bytes = parse_bytes(size);
    base::require(candidate.options.fusion_bytes > 0, "policy '{}': a bucket of 0 bytes; allowed: 1 or more", label);
  }
  return candidate;
}

schedule::Timeline timeline_of(const Profile& profile) {
  base::require(!profile.layers.empty(), "the profile has no layers");
  schedule::Timeline timeline{.forward_s = profile.forward_s, .layers = {}};
  for (const ProfileLayer& layer : profile.layers)
    timeline.layers.push_back({layer.name, layer.bytes, layer.backward_s});
  return timeline;
}

}  // namespace syncopate::simulate
