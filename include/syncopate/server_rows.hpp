// Tables of rows on parameter servers: embeddings, whose rows are addressed by id and created on first access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {

/// A table of rows. A row's first values are a function of the seed, the table's index and the row's id alone: uniform
/// in [-scale, scale). They are the same for every worker and with any number of servers.
struct RowOptions {
  std::string name;
  std::size_t width = 0;  ///< floats of a row; 1 to 65536
  /// A name from shelf optim/rule, not of a layer-wise rule. Each row has its own state and its own number of steps.
  std::string rule = "sgd";
  /// As in OptimizerOptions, but weight_decay is 0 unless given: only rows that get a gradient would decay.
  std::vector<std::pair<std::string, double>> hyperparameters{};
  std::uint64_t seed = 0;
  double scale = 0.01;  ///< 0 or more
  friend bool operator==(const RowOptions&, const RowOptions&) = default;
};

/// Rows of one table as a checkpoint holds them.
struct KeptRows {
  std::string rule{};                  ///< whose state it is
  std::vector<std::uint64_t> ids{};    ///< each once
  std::vector<std::uint64_t> steps{};  ///< number of each row's steps
  /// For each id its `width` floats, then `width` floats of each state of the rule, in the rule's order.
  std::vector<float> values{};
};

}  // namespace syncopate
