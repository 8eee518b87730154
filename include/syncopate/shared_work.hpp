// Shared work: ranks divide the items of a computation among themselves, and every rank gets the results of all.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace syncopate {

class Group;

/// All-gathers `values` in place: rank r contributes counts[r] values, which follow those of lower ranks. Every rank
/// calls it with equal counts.
using GatherValues = std::function<void(std::span<double> values, std::span<const std::size_t> counts)>;

/// Gathers among the ranks of a group, which must outlive the result. `name` appears in errors, equal on all ranks.
[[nodiscard]] GatherValues gather_among(Group& group, std::string name);

/// Which rank computes which item. The same arguments give the same division on every rank.
class WorkDivision final {
 public:
  /// Rank owners[i] computes item i. Throws Misuse for an owner that is not one of the `ranks`, at least 1.
  WorkDivision(std::span<const int> owners, int ranks);
  /// Divides items by their work, in any unit. The largest first, each goes to the rank with the least work so far: no
  /// rank has more than an even share and one item.
  [[nodiscard]] static WorkDivision balanced(std::span<const std::size_t> work, int ranks);

  [[nodiscard]] std::size_t items() const noexcept { return items_.size(); }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(ends_.size()); }
  /// The items of a rank, in ascending order.
  [[nodiscard]] std::span<const std::size_t> of(int rank) const;
  /// Gives every rank the results of all items: `results` has equally many values for each item, item after item; those
  /// of this rank's items are in place. A collective; without items `gather` is not called.
  void gather(std::span<double> results, const GatherValues& gather) const;

 private:
  std::vector<std::size_t> items_;  ///< those of rank 0, then those of rank 1 ...
  std::vector<std::size_t> ends_;   ///< of each rank's within items_
};

/// A function of tensors whose evaluations the ranks of a group divide: the parallel tensor operator (PTO) of CommLib,
/// section 5. Every rank has all tensors, with the same values, computes the results of its own, and receives those of
/// the others. They have the bits of a rank that computes all, if the function has: it must not depend on the rank.
///
/// `run` costs the work of the rank with the most, and one all-gather of 8 bytes per result. It is faster than
/// undivided work if the work saved, up to 1 - 1/ranks of the whole, takes longer than that all-gather: two to five
/// latencies of the network for a few thousand results.
class SharedWork final {
 public:
  /// Writes the results of one tensor. It must not use the group.
  using Function = std::function<void(std::size_t tensor, std::span<double> results)>;

  /// A collective. `work`: of each tensor, for example its elements. `results`: values per tensor, at least 1. The
  /// group must outlive this object; `name` appears in errors and is equal on all ranks. Throws Misuse; and Mismatch on
  /// every rank, which names the values, if the arguments of two ranks differ; the group remains usable.
  SharedWork(Group& group, std::span<const std::size_t> work, std::size_t results, std::string name = "shared work");

  [[nodiscard]] const WorkDivision& division() const noexcept { return division_; }
  /// Values per tensor.
  [[nodiscard]] std::size_t results() const noexcept { return results_; }
  /// A collective. Calls `function` for this rank's tensors, in ascending order on this thread, and returns the results
  /// of all tensors, tensor after tensor. Results that `function` does not write are 0. Its exception passes
  /// through and aborts the group: the other ranks throw RemoteFailure with its text.
  [[nodiscard]] std::vector<double> run(const Function& function) const;

 private:
  Group& group_;
  std::string name_;
  std::size_t results_;
  WorkDivision division_;
};

}  // namespace syncopate
