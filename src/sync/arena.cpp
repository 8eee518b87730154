// Arena: lays gradients out by type, without gaps.
#include "sync/arena.hpp"

namespace syncopate::sync {

Arena::Arena(Group& group, const std::vector<Gradient>& gradients) : slots_(gradients.size()) {
  for (const DType dtype : kDTypes) {
    std::size_t count = 0;
    for (const Gradient& gradient : gradients)
      if (gradient.dtype == dtype) count += gradient.elements;
    if (count == 0) continue;
    const std::size_t width = size_of(dtype);
    std::byte* start = memory_.emplace_back(group.allocate(count * width)).get();
    vectors_.emplace_back(start, count, dtype);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].dtype != dtype) continue;
      slots_[i] = Buffer(start, gradients[i].elements, dtype);
      start += gradients[i].elements * width;
    }
  }
}

Arena::Arena(const std::vector<Gradient>& gradients) {
  for (const Gradient& gradient : gradients) slots_.emplace_back(nullptr, gradient.elements, gradient.dtype);
}

std::size_t Arena::bytes_of(std::size_t first, std::size_t last) const noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = first; i <= last; ++i) bytes += slots_[i].bytes().size();
  return bytes;
}

}  // namespace syncopate::sync
