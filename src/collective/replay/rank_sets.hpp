// Rank sets: sets of ranks by number, each kept once, so that what thousands of chunks hold takes a number each.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace syncopate::collective::replay {

class RankSets final {
 public:
  using Id = std::uint32_t;
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  /// To begin with: every rank by itself, whose number is the rank, and nobody.
  explicit RankSets(std::uint32_t ranks);

  [[nodiscard]] Id empty() const noexcept { return ranks_; }
  [[nodiscard]] std::uint32_t size_of(Id set) const noexcept { return sizes_[set]; }
  /// The first rank that is in both; kNobody: there is none.
  [[nodiscard]] std::uint32_t shared(Id a, Id b) const noexcept;
  /// Of sets that share no rank.
  [[nodiscard]] Id united(Id a, Id b);
  /// Every rank of it `by` further, round the group.
  [[nodiscard]] Id rotated(Id set, std::uint32_t by);

 private:
  using Word = std::uint64_t;
  [[nodiscard]] const Word* words_of(Id set) const noexcept { return words_.data() + std::size_t{set} * width_; }
  Id add();

  std::uint32_t ranks_;
  std::size_t width_;                             ///< words of a set
  std::vector<Word> words_;                       ///< bit r: rank r is in the set
  std::vector<std::uint32_t> sizes_;              ///< by set
  std::unordered_map<std::uint64_t, Id> united_;  ///< by both numbers
};

}  // namespace syncopate::collective::replay
