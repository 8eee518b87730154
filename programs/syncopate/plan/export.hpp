// Export: a partition as other frameworks take it.
#pragma once

#include <nlohmann/json.hpp>

#include "syncopate/predict.hpp"

namespace syncopate::tools::plan {

/// PyTorch's DistributedDataParallel(bucket_cap_mb_list=…), 2.13 and later: MiB at which each bucket closes, in the
/// order of the backward pass. Exact if parameters are registered in forward order.
[[nodiscard]] nlohmann::json ddp_caps(const Prediction& prediction);
/// Horovod's DistributedOptimizer(groups=…): the names of the layers of each bucket, to be replaced by their
/// parameters.
[[nodiscard]] nlohmann::json horovod_groups(const Prediction& prediction, const Profile& profile);

}  // namespace syncopate::tools::plan
