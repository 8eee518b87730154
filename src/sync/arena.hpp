// Arena: where each gradient lies: in one contiguous run of memory per element type, or where a caller has placed it.
#pragma once

#include <memory>
#include <vector>

#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// Buckets are lists of spans of it, so merging and re-planning copy nothing.
class Arena final {
 public:
  Arena(Group& group, const std::vector<Gradient>& gradients);
  /// Without memory of its own: gradients have no address until they are placed.
  explicit Arena(const std::vector<Gradient>& gradients);

  /// Only without memory of its own; as many elements of the same type as the gradient has.
  void place(std::size_t i, Buffer values) noexcept { slots_[i] = values; }

  [[nodiscard]] std::size_t count() const noexcept { return slots_.size(); }  ///< gradients
  [[nodiscard]] Buffer gradient(std::size_t i) const noexcept { return slots_[i]; }
  [[nodiscard]] std::size_t bytes_of(std::size_t first, std::size_t last) const noexcept;  ///< of gradients
  [[nodiscard]] const std::vector<std::shared_ptr<std::byte[]>>& memory() const noexcept { return memory_; }
  /// One vector per type in use.
  [[nodiscard]] const std::vector<Buffer>& vectors() const noexcept { return vectors_; }

 private:
  std::vector<std::shared_ptr<std::byte[]>> memory_;
  std::vector<Buffer> vectors_;
  std::vector<Buffer> slots_;
};

}  // namespace syncopate::sync
