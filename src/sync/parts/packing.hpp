// Packing: a run's gradients laid out part after part, for exchanges that narrow.
#pragma once

#include "sync/exchange.hpp"

namespace syncopate::sync {

/// A part holds its rows of one tensor after the other, as the cut says; all parts are as long as the longest.
class Packing final {
 public:
  /// Of `tensors.whole`, which must outlive this, as all of `tensors`.
  explicit Packing(const Shared& tensors);

  [[nodiscard]] std::size_t part_elements() const noexcept { return part_elements_; }
  /// Into `packed`, which holds at least as many times part_elements() as the cut has parts; and back.
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
  const Cut& cut_;
  std::size_t part_elements_ = 0;
  std::size_t width_ = 1;  ///< bytes of an element
};

}  // namespace syncopate::sync
