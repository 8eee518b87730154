// Cut: even parts of rows, or the shards that ranks update.
#include "sync/parts/cut.hpp"

namespace syncopate::sync {

Cut::Cut(std::span<const Gradient> gradients, const RowShare& share) : parts_(share.count) {
  for (const Gradient& gradient : gradients)
    rows_.push_back(share.is_shard || gradient.rows == 0 ? gradient.elements : gradient.rows);
  if (share.is_shard) shards_.emplace(rows_, static_cast<int>(share.count));
}

Range Cut::rows_of(std::size_t i, std::size_t part) const {
  return shards_ ? shards_->of(i, static_cast<int>(part)) : even_part(rows_[i], parts_, part);
}

}  // namespace syncopate::sync
