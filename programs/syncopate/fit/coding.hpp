// Coding: how long codecs take on the cores of the ranks.
#pragma once

#include <string>
#include <vector>

#include "syncopate/cluster.hpp"
#include "syncopate/group.hpp"

namespace syncopate::tools::fit {

/// Encodes and decodes a drawn gradient on all ranks at once, as they do in training; the median of the slowest rank.
/// With the residual where that is sound for the codec. Every rank calls it and has the result. Throws Misuse for a
/// codec that is unknown.
/// Throws Misuse for a codec that does not exist, or whose parameter is not allowed; measures nothing.
void require_codecs(const std::vector<std::string>& codecs);
[[nodiscard]] std::vector<CodingCost> measure_coding(Group& group, const std::vector<std::string>& codecs);

}  // namespace syncopate::tools::fit
