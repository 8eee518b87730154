// Verify: proves that the programs of all ranks compute a collective.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collective/replay/price.hpp"

namespace syncopate::collective::replay {

class RankSets final {
 public:
  using Id = std::uint32_t;
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  /// Initially the sets of one rank each, numbered by rank, and the empty set.
  explicit RankSets(std::uint32_t ranks);

  [[nodiscard]] Id empty() const noexcept { return ranks_; }
  [[nodiscard]] std::uint32_t size_of(Id set) const noexcept { return sizes_[set]; }
  /// The lowest rank that both sets contain; kNobody if there is none.
  [[nodiscard]] std::uint32_t shared(Id a, Id b) const noexcept;
  /// The union of two sets without a common rank.
  [[nodiscard]] Id united(Id a, Id b);
  /// The set with `by` added to every rank, modulo the number of ranks.
  [[nodiscard]] Id rotated(Id set, std::uint32_t by);

 private:
  using Word = std::uint64_t;
  [[nodiscard]] const Word* words_of(Id set) const noexcept { return words_.data() + std::size_t{set} * width_; }
  Id add();

  std::uint32_t ranks_;
  std::size_t width_;                             ///< words per set
  std::vector<Word> words_;                       ///< bit r: the set contains rank r
  std::vector<std::uint32_t> sizes_;              ///< by set
  std::unordered_map<std::uint64_t, Id> united_;  ///< unions, by the numbers of both sets
};

/// See verify_plans (syncopate/plan.hpp). Returns the flaw, or an empty string. For an ensemble with one program, rank
/// 0's part is enough: inputs and results of every other rank are rotations of rank 0's.
[[nodiscard]] std::string verify(const Ensemble& ensemble, Collective collective, int root);

}  // namespace syncopate::collective::replay
