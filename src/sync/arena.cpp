// Arena: laying gradients out, type by type, without gaps.
#include "sync/arena.hpp"

#include <cstring>
#include <new>

#include "base/require.hpp"

namespace syncopate::sync {

namespace {
constexpr std::align_val_t kAlignment{4096};  // pages of its own: no cache line is shared with anything else
}

void Arena::Free::operator()(std::byte* memory) const noexcept { ::operator delete(memory, kAlignment); }

Arena::Arena(const std::vector<Gradient>& gradients) : slots_(gradients.size()) {
  for (const DType dtype : kDTypes) {
    std::size_t count = 0;
    for (const Gradient& gradient : gradients)
      if (gradient.dtype == dtype) count += gradient.elements;
    if (count == 0) continue;
    const std::size_t width = size_of(dtype);
    auto* start = static_cast<std::byte*>(::operator new(count* width, kAlignment));
    memory_.emplace_back(start);
    std::memset(start, 0, count * width);
    vectors_.emplace_back(start, count, dtype);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].dtype != dtype) continue;
      slots_[i] = Buffer(start, gradients[i].elements, dtype);
      start += gradients[i].elements * width;
    }
  }
}

Buffer Arena::span(std::size_t first, std::size_t last) const noexcept {
  std::size_t count = 0;
  for (std::size_t i = first; i <= last; ++i) count += slots_[i].count;
  return {slots_[first].data, count, slots_[first].dtype};
}

}  // namespace syncopate::sync
