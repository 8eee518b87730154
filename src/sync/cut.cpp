// Cut: even parts of rows, or the shards that ranks update.
#include "sync/cut.hpp"

#include <algorithm>
#include <cstring>

namespace syncopate::sync {

Cut::Cut(std::span<const Gradient> gradients, const RowShare& share) : parts_(share.count) {
  for (const Gradient& gradient : gradients)
    rows_.push_back(share.is_shard || gradient.rows == 0 ? gradient.elements : gradient.rows);
  if (share.is_shard) shards_.emplace(rows_, static_cast<int>(share.count));
}

Range Cut::rows_of(std::size_t i, std::size_t part) const {
  return shards_ ? shards_->of(i, static_cast<int>(part)) : even_part(rows_[i], parts_, part);
}

Packing::Packing(const NarrowedTensors& tensors)
    : tensors_(tensors.whole),
      gradients_(tensors.gradients),
      packed_(tensors.packed),
      cut_(tensors.cut),
      width_(size_of(tensors.whole.front().values.dtype)) {
  for (std::size_t part = 0; part < cut_.parts(); ++part) part_elements_ = std::max(part_elements_, elements_of(part));
}

Buffer Packing::memory(Group& group, std::size_t parts) const {
  const std::size_t count = parts * part_elements_;
  if (!packed_) packed_ = group.allocate(count * width_);
  return {packed_.get(), count, tensors_.front().values.dtype};
}

std::size_t Packing::elements_of(std::size_t part) const {
  std::size_t elements = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    elements += cut_.rows_of(gradients_[i], part).size() * tensors_[i].columns;
  return elements;
}

/// Calls copy(offset in the packed memory, values) for every tensor's rows in a part.
template <class Copy>
void Packing::each_piece(std::size_t part, Copy copy) const {
  std::size_t offset = part * part_elements_ * width_;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Range rows = cut_.rows_of(gradients_[i], part);
    if (rows.size() == 0) continue;
    const std::size_t row_bytes = tensors_[i].columns * width_;
    const base::Bytes values = tensors_[i].values.bytes().subspan(rows.begin * row_bytes, rows.size() * row_bytes);
    copy(offset, values);
    offset += values.size();
  }
}

void Packing::pack(std::byte* packed, std::size_t part) const {
  each_piece(part, [&](std::size_t offset, base::Bytes values) {
    std::memcpy(packed + offset, values.data(), values.size());
  });
}

void Packing::unpack(const std::byte* packed, std::size_t part) const {
  each_piece(part, [&](std::size_t offset, base::Bytes values) {
    std::memcpy(values.data(), packed + offset, values.size());
  });
}

void Packing::pack(std::byte* packed) const {
  for (std::size_t part = 0; part < cut_.parts(); ++part) pack(packed, part);
}

void Packing::unpack(const std::byte* packed) const {
  for (std::size_t part = 0; part < cut_.parts(); ++part) unpack(packed, part);
}

void Packing::place(std::span<compress::Tensor> part, std::size_t index, std::byte* packed) const {
  std::byte* values = packed + index * part_elements_ * width_;
  for (compress::Tensor& tensor : part) {
    tensor.values.data = values;
    values += tensor.values.bytes().size();
  }
}

}  // namespace syncopate::sync
