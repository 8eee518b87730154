// Layer tables: what a model's layers hold and compute, and the profile that follows from a machine's throughput.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncopate::tools::profile {

/// A learnable layer.
struct TableLayer {
  std::string name;
  std::uint64_t elements = 0;
  double flops = 0;  ///< of one sample's forward pass
};

/// CSV with the header "name,elements,flops" (columns in any order, further ones ignored; a line that begins with # is
/// a remark), layers in forward order. Rows whose names differ only behind the last dot, like fc.weight and fc.bias,
/// are one layer, because they become ready together. Throws SystemFailure, and Corrupt naming file and line.
[[nodiscard]] std::vector<TableLayer> read_table(const std::string& file);

struct Machine {
  double flops_per_s = 0;
  double batch = 1;  ///< samples of a step
};

/// A profile file's content: a layer's backward pass computes its gradient and its input's, twice the forward pass.
[[nodiscard]] nlohmann::ordered_json profile_of(const std::string& model, const std::vector<TableLayer>& layers,
                                                const Machine& machine);

}  // namespace syncopate::tools::profile
