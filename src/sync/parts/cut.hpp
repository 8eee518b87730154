// Cut: which rows of each gradient lie in which part, where an exchange narrows gradients to parts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sync/exchange.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::sync {

/// It goes through each gradient, never through a bucket: which rank has which rows does not depend on what travels
/// together.
class Cut final {
 public:
  Cut(std::span<const Gradient> gradients, const RowShare& share);

  [[nodiscard]] std::size_t parts() const noexcept { return parts_; }
  /// The number of rows of gradient i. Where ranks update shards, a row is an element.
  [[nodiscard]] std::size_t rows(std::size_t i) const noexcept { return rows_[i]; }
  /// The rows of gradient i in part `part`: an even part of all, or a shard.
  [[nodiscard]] Range rows_of(std::size_t i, std::size_t part) const;

 private:
  std::size_t parts_;
  std::vector<std::size_t> rows_;
  std::optional<Shards> shards_;
};

}  // namespace syncopate::sync
