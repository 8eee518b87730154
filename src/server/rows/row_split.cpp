// Splits ids by server, and finds those that are equal.
#include "server/rows/row_split.hpp"

#include <algorithm>
#include <bit>

#include "base/require.hpp"
#include "server/job/row_rules.hpp"

namespace syncopate::server {

void RowSplit::split(std::span<const std::uint64_t> ids, std::size_t servers) {
  base::require(ids.size() < std::size_t{1} << 31, "{} rows in a call; allowed: below 2^31", ids.size());
  ids_ = ids;
  firsts_.resize(servers);
  for (auto& firsts : firsts_) firsts.clear();
  next_.assign(ids.size(), kNone);
  last_.resize(ids.size());
  slots_.assign(std::bit_ceil(2 * ids.size() + 1), kNone);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t place = 0; place < ids.size(); ++place) {
    std::size_t slot = base::mixed(ids[place]) & mask;
    while (slots_[slot] != kNone && ids[slots_[slot]] != ids[place]) slot = (slot + 1) & mask;
    if (slots_[slot] == kNone) {
      slots_[slot] = last_[place] = place;
      firsts_[server_of_row(ids[place], servers)].push_back(place);
    } else {
      std::uint32_t& last = last_[slots_[slot]];
      last = next_[last] = place;
    }
  }
}

}  // namespace syncopate::server
