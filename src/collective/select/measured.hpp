// Measured: an algorithm's time at any size, from a cluster's measured costs.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "collective/select/select.hpp"

namespace syncopate::collective::select {

/// An algorithm's cost law for a given shape, as a function of the bytes.
using Law = std::function<double(double bytes)>;

/// Whether the measured costs apply to a shape: the same number of ranks, on hosts of the same size.
[[nodiscard]] bool covers(const NetworkCost& cost, const Shape& shape);

struct Asked {
  Collective collective = Collective::allreduce;
  std::string_view algorithm;
  double bytes = 0;
};

/// Seconds of the collective by that algorithm, from its measured table. Between two sizes: linear interpolation of
/// log time over log size. Beyond the table: the cost law, scaled to meet the table's nearest entry. nullopt if it was
/// not measured. allgather_v and alltoall_v use the measurements of allgather and alltoall, which have the same plans.
[[nodiscard]] std::optional<double> measured_seconds(const NetworkCost& cost, const Asked& asked, const Law& law);

}  // namespace syncopate::collective::select
