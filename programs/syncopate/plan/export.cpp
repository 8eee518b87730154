// Export: groups of names.
#include "plan/export.hpp"

namespace syncopate::tools::plan {

nlohmann::json horovod_groups(const Prediction& prediction, const Profile& profile) {
  auto groups = nlohmann::json::array();
  for (const PredictedBucket& bucket : prediction.buckets) {
    auto names = nlohmann::json::array();
    for (std::size_t layer = bucket.last + 1; layer-- > bucket.first;) names.push_back(profile.layers[layer].name);
    groups.push_back(std::move(names));
  }
  return groups;
}

}  // namespace syncopate::tools::plan
