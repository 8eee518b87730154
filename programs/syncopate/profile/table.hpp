// Layer tables: what a model's layers hold and compute, from a file.
#pragma once

#include <string>
#include <vector>

#include "syncopate/predict.hpp"

namespace syncopate::tools::profile {

/// CSV with the header "name,elements,flops" (columns in any order, further ones ignored; a line that begins with # is
/// a remark), layers in forward order. Rows whose names differ only behind the last dot, like fc.weight and fc.bias,
/// are one layer, because they become ready together. Throws SystemFailure, and Corrupt naming file and line.
[[nodiscard]] std::vector<LayerWork> read_table(const std::string& file);

}  // namespace syncopate::tools::profile
