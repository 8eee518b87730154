// Measured: what a cluster's timings say of an algorithm at any size.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "collective/select/select.hpp"

namespace syncopate::collective::select {

/// An algorithm's cost law for the shape at hand, by the bytes.
using Law = std::function<double(double bytes)>;

/// Whether what was measured holds for such a shape: as many ranks, on hosts of the same size.
[[nodiscard]] bool covers(const NetworkCost& cost, const Shape& shape);

struct Asked {
  Collective collective = Collective::allreduce;
  std::string_view algorithm;
  double bytes = 0;
};

/// Seconds of the collective by that algorithm according to its table: between two points a line in the logarithms of
/// size and time, beyond its ends the law as far as the table's end is off it. Nothing where it was not measured.
/// (allgather_v and alltoall_v go by the timings of allgather and alltoall: the same plans.)
[[nodiscard]] std::optional<double> measured_seconds(const NetworkCost& cost, const Asked& asked, const Law& law);

}  // namespace syncopate::collective::select
