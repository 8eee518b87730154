// Packing: copying rows of every gradient to and from their part.
#include "sync/packing.hpp"

#include <algorithm>
#include <cstring>

namespace syncopate::sync {

Packing::Packing(std::span<const compress::Tensor> tensors, std::size_t parts)
    : tensors_(tensors), parts_(parts), width_(size_of(tensors.front().values.dtype)) {
  for (std::size_t part = 0; part < parts_; ++part) {
    std::size_t elements = 0;
    for (const compress::Tensor& tensor : tensors_)
      elements += even_part(tensor.rows, parts_, part).size() * tensor.columns;
    part_elements_ = std::max(part_elements_, elements);
  }
}

/// Calls copy(offset in the packed memory, values) for every tensor's rows in every part.
template <class Copy>
void Packing::each_piece(Copy copy) const {
  for (std::size_t part = 0; part < parts_; ++part) {
    std::size_t offset = part * part_elements_ * width_;
    for (const compress::Tensor& tensor : tensors_) {
      const Range rows = even_part(tensor.rows, parts_, part);
      const std::size_t row_bytes = tensor.columns * width_;
      const base::Bytes values = tensor.values.bytes().subspan(rows.begin * row_bytes, rows.size() * row_bytes);
      copy(offset, values);
      offset += values.size();
    }
  }
}

void Packing::pack(std::byte* packed) const {
  each_piece([&](std::size_t offset, base::Bytes values) {
    if (!values.empty()) std::memcpy(packed + offset, values.data(), values.size());
  });
}

void Packing::unpack(const std::byte* packed) const {
  each_piece([&](std::size_t offset, base::Bytes values) {
    if (!values.empty()) std::memcpy(values.data(), packed + offset, values.size());
  });
}

void Packing::place(std::span<compress::Tensor> part, std::size_t index, std::byte* packed) const {
  std::byte* values = packed + index * part_elements_ * width_;
  for (compress::Tensor& tensor : part) {
    tensor.values.data = values;
    values += tensor.values.bytes().size();
  }
}

}  // namespace syncopate::sync
