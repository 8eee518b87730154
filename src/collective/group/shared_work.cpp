// Items go to ranks, largest first; results travel in one all-gather, in the order of ranks.
#include "syncopate/shared_work.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "base/require.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {

namespace {

/// Throws Mismatch on every rank unless all ranks give the same values, of which value i is `what(i)`. The largest
/// complement of a value on any rank is that of the smallest value.
void require_equal(Group& group, const std::string& name, std::span<const std::size_t> values,
                   const std::function<std::string(std::size_t)>& what) {
  std::vector<std::int64_t> extremes;
  for (const std::size_t value : values)
    extremes.insert(extremes.end(), {static_cast<std::int64_t>(value), ~static_cast<std::int64_t>(value)});
  allreduce(group, std::span(extremes), {.op = ReduceOp::max, .name = name});
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const auto most = extremes[2 * i], least = ~extremes[2 * i + 1]; most != least)
      throw Mismatch(
          fmt::format("{}: {} is {} on one rank and {} on another, {} on rank {}; allowed: equal on all ranks", name,
                      what(i), least, most, values[i], group.rank()),
          {.rank = group.rank(), .operation = name});
}

}  // namespace

GatherValues gather_among(Group& group, std::string name) {
  return [&group, name = std::move(name)](std::span<double> values, std::span<const std::size_t> counts) {
    allgather_v(group, values, counts, {.name = name});
  };
}

WorkDivision::WorkDivision(std::span<const int> owners, int ranks) : items_(owners.size()) {
  base::require(ranks >= 1, "work is divided among {} ranks; allowed: 1 and more", ranks);
  ends_.resize(static_cast<std::size_t>(ranks));
  for (const int owner : owners) {
    base::require(owner >= 0 && owner < ranks, "an item of rank {}; allowed: 0 to {}", owner, ranks - 1);
    ++ends_[static_cast<std::size_t>(owner)];
  }
  std::exclusive_scan(ends_.begin(), ends_.end(), ends_.begin(), std::size_t{0});
  for (std::size_t i = 0; i < owners.size(); ++i) items_[ends_[static_cast<std::size_t>(owners[i])]++] = i;
}

WorkDivision WorkDivision::balanced(std::span<const std::size_t> work, int ranks) {
  base::require(ranks >= 1, "work is divided among {} ranks; allowed: 1 and more", ranks);
  std::vector<std::size_t> order(work.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t item) { return work[item]; });
  using Load = std::tuple<std::size_t, std::size_t, int>;  // work, items (of those without work), rank
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int rank = 0; rank < ranks; ++rank) loads.emplace(0, 0, rank);
  std::vector<int> owners(work.size());
  for (const std::size_t item : order) {
    const auto [load, items, rank] = loads.top();
    loads.pop();
    owners[item] = rank;
    loads.emplace(load + work[item], items + 1, rank);
  }
  return {owners, ranks};
}

std::span<const std::size_t> WorkDivision::of(int rank) const {
  base::require(rank >= 0 && rank < ranks(), "rank {} of work divided among {}; allowed: 0 to {}", rank, ranks(),
                ranks() - 1);
  const auto place = static_cast<std::size_t>(rank);
  const std::size_t begin = place == 0 ? 0 : ends_[place - 1];
  return std::span(items_).subspan(begin, ends_[place] - begin);
}

void WorkDivision::gather(std::span<double> results, const GatherValues& gather) const {
  if (items_.empty()) return;
  base::require(results.size() % items_.size() == 0, "{} results of {} items; allowed: equally many for each",
                results.size(), items_.size());
  const std::size_t each = results.size() / items_.size();
  std::vector<double> values(results.size());
  for (std::size_t i = 0; i < items_.size(); ++i)
    std::copy_n(results.data() + items_[i] * each, each, values.data() + i * each);
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < ranks(); ++rank) counts.push_back(of(rank).size() * each);
  gather(values, counts);
  for (std::size_t i = 0; i < items_.size(); ++i)
    std::copy_n(values.data() + i * each, each, results.data() + items_[i] * each);
}

SharedWork::SharedWork(Group& group, std::span<const std::size_t> work, std::size_t results, std::string name)
    : group_(group), name_(std::move(name)), results_(results), division_(WorkDivision::balanced(work, group.size())) {
  require_equal(group_, name_, std::vector{work.size(), results},
                [](std::size_t i) { return i == 0 ? "the number of tensors" : "the number of results per tensor"; });
  base::require(results >= 1, "{}: 0 results per tensor; allowed: 1 and more", name_);
  require_equal(group_, name_, work, [](std::size_t i) { return fmt::format("the work of tensor {}", i); });
}

std::vector<double> SharedWork::run(const Function& function) const {
  std::vector<double> results(division_.items() * results_);
  for (const std::size_t tensor : division_.of(group_.rank())) try {
      function(tensor, std::span(results).subspan(tensor * results_, results_));
    } catch (const std::exception& error) {
      group_.abort(fmt::format("{} failed on tensor {}: {}", name_, tensor, error.what()), name_);
      throw;
    } catch (...) {  // a callback may throw anything
      group_.abort(fmt::format("{} failed on tensor {}", name_, tensor), name_);
      throw;
    }
  division_.gather(results, gather_among(group_, name_));
  return results;
}

}  // namespace syncopate
