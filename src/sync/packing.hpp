// Packing: a run's gradients laid out part after part, for exchanges that narrow.
#pragma once

#include "sync/exchange.hpp"

namespace syncopate::sync {

/// The cut goes through each gradient at its rows, never through the run: which rank holds which rows does not depend
/// on what travels together. Part r of `parts` holds, tensor after tensor, rows even_part(rows, parts, r); all parts
/// are as long as the longest.
class Packing final {
 public:
  Packing(std::span<const compress::Tensor> tensors, std::size_t parts);

  [[nodiscard]] std::size_t part_elements() const noexcept { return part_elements_; }
  /// Into `packed`, which holds at least `parts` times part_elements(); and back.
  void pack(std::byte* packed) const;
  void unpack(const std::byte* packed) const;
  /// Lets the values of `part`, this rank's rows, point into part `index` of `packed`.
  void place(std::span<compress::Tensor> part, std::size_t index, std::byte* packed) const;

 private:
  template <class Copy>
  void each_piece(Copy copy) const;

  std::span<const compress::Tensor> tensors_;
  std::size_t parts_ = 1;
  std::size_t part_elements_ = 0;
  std::size_t width_ = 1;  ///< bytes of an element
};

}  // namespace syncopate::sync
