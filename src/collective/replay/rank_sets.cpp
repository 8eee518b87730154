// Rank sets: bit sets, with a cache of unions.
#include "collective/replay/rank_sets.hpp"

#include <algorithm>
#include <bit>

namespace syncopate::collective::replay {

namespace {
constexpr std::uint32_t kBits = 64;
}  // namespace

RankSets::RankSets(std::uint32_t ranks) : ranks_(ranks), width_((ranks + kBits - 1) / kBits) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Id set = add();
    words_[std::size_t{set} * width_ + rank / kBits] = Word{1} << (rank % kBits);
    sizes_[set] = 1;
  }
  add();
}

RankSets::Id RankSets::add() {
  words_.resize(words_.size() + width_);
  sizes_.push_back(0);
  return static_cast<Id>(sizes_.size() - 1);
}

std::uint32_t RankSets::shared(Id a, Id b) const noexcept {
  for (std::size_t i = 0; i < width_; ++i)
    if (const Word both = words_of(a)[i] & words_of(b)[i]; both != 0)
      return static_cast<std::uint32_t>(i * kBits) + static_cast<std::uint32_t>(std::countr_zero(both));
  return kNobody;
}

RankSets::Id RankSets::united(Id a, Id b) {
  const auto [known, is_first] = united_.try_emplace(std::uint64_t{std::min(a, b)} << 32 | std::max(a, b));
  if (!is_first) return known->second;
  const Id set = known->second = add();
  for (std::size_t i = 0; i < width_; ++i) words_[set * width_ + i] = words_of(a)[i] | words_of(b)[i];
  sizes_[set] = sizes_[a] + sizes_[b];
  return set;
}

RankSets::Id RankSets::rotated(Id set, std::uint32_t by) {
  const Id turned = add();
  for (std::size_t i = 0; i < width_; ++i)
    for (Word rest = words_of(set)[i]; rest != 0; rest &= rest - 1) {
      const auto rank = static_cast<std::uint32_t>(i * kBits) + static_cast<std::uint32_t>(std::countr_zero(rest));
      const std::uint32_t to = (rank + by) % ranks_;
      words_[turned * width_ + to / kBits] |= Word{1} << (to % kBits);
    }
  sizes_[turned] = sizes_[set];
  return turned;
}

}  // namespace syncopate::collective::replay
