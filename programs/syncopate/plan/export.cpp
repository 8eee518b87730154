// Export: caps in MiB, groups of names.
#include "plan/export.hpp"

namespace syncopate::tools::plan {

// PyTorch closes a bucket with the parameter that makes it reach its cap, which it keeps in whole bytes; the quotient
// by a power of two is exact, so the cap is reached by the bucket's last parameter and by none before it.
nlohmann::json ddp_caps(const Prediction& prediction) {
  auto caps = nlohmann::json::array();
  for (const PredictedBucket& bucket : prediction.buckets)
    caps.push_back(static_cast<double>(bucket.bytes) / (1 << 20));
  return caps;
}

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
