// Cut: which rows of each gradient lie in which part where an exchange narrows; Packing: the parts in memory.
#pragma once

#include <memory>
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

/// A part holds its rows of each tensor in turn, as the cut assigns them. All parts have the length of the longest.
class Packing final {
 public:
  /// Packs `tensors.whole`. All of `tensors` must outlive this.
  explicit Packing(const NarrowedTensors& tensors);

  [[nodiscard]] std::size_t part_elements() const noexcept { return part_elements_; }
  /// Memory of the group's for `parts` parts, which `NarrowedTensors::packed` keeps for the next step.
  [[nodiscard]] Buffer memory(Group& group, std::size_t parts) const;
  /// Copies into `packed`, which holds at least cut.parts() times part_elements() elements; and back.
  void pack(std::byte* packed) const;
  void unpack(const std::byte* packed) const;
  /// One part alone.
  void pack(std::byte* packed, std::size_t part) const;
  void unpack(const std::byte* packed, std::size_t part) const;
  /// Lets the values of `part`, this rank's rows, point into part `index` of `packed`.
  void place(std::span<compress::Tensor> part, std::size_t index, std::byte* packed) const;

 private:
  [[nodiscard]] std::size_t elements_of(std::size_t part) const;
  template <class Copy>
  void each_piece(std::size_t part, Copy copy) const;

  std::span<const compress::Tensor> tensors_;
  std::span<const std::size_t> gradients_;
  std::shared_ptr<std::byte[]>& packed_;
  const Cut& cut_;
  std::size_t part_elements_ = 0;
  std::size_t width_ = 1;  ///< bytes of an element
};

}  // namespace syncopate::sync
