// Export: a partition as Horovod takes it.
#pragma once

#include <nlohmann/json.hpp>

#include "syncopate/predict.hpp"

namespace syncopate::tools::plan {

/// Horovod's DistributedOptimizer(groups=…): the names of the layers of each bucket, to be replaced by their
/// parameters.
[[nodiscard]] nlohmann::json horovod_groups(const Prediction& prediction, const Profile& profile);

}  // namespace syncopate::tools::plan
