// Bisection: brackets the k-th largest magnitude with two thresholds and selects elements between them.
#include "compress/sparse/bisection.hpp"

#include "kernel/select.hpp"

namespace syncopate::compress::sparse {

namespace {

constexpr std::size_t kTrials = 30;
constexpr std::uint32_t kAboveAll = 0x8000'0000;
constexpr std::uint32_t kLeast = 1;  ///< zeros are not selected

/// Thresholds as magnitudes (kernel/select.hpp), which have the order of |v|.
struct Bracket {
  std::uint32_t upper = kAboveAll, lower = kLeast;  ///< t1, t2
  std::size_t above = 0;                            ///< number of elements of at least `upper`; at most k
  std::size_t trials = 0;
};

Bracket bracket_of(const Compensated& tensor, std::size_t k, std::uint32_t largest) {
  const double most = std::bit_cast<float>(std::min(largest, kernel::kNotFinite - 1));
  Bracket found;
  double low = 0, high = 1;
  std::size_t within = tensor.size();  // number of elements of at least `lower`
  for (; found.trials < kTrials && found.above < k; ++found.trials) {
    const double ratio = low + (high - low) / 2;
    const std::uint32_t trial = std::max(kernel::magnitude(static_cast<float>(ratio * most)), kLeast);
    const std::size_t reached = kernel::count_at_least(trial, tensor.elements(), tensor.size());
    (reached <= k ? high : low) = ratio;
    if (reached <= k && reached > found.above) {
      found.above = reached;
      found.upper = trial;
    }
    if (reached > k && reached < within) {
      within = reached;
      found.lower = trial;
    }
  }
  return found;
}

/// Keeps k candidates: all of at least `upper`, and a run of neighbours among the others.
void keep_drawn(std::size_t k, const Bracket& bracket, const base::CounterRandom& random, Selection& into) {
  const std::size_t others = into.size() - bracket.above;
  const std::size_t missing = std::min(k - bracket.above, others);
  const std::size_t begin = random.below(static_cast<std::uint32_t>(others - missing + 1), 0);
  std::size_t other = 0;
  into.keep_where([&](float value) {
    if (kernel::magnitude(value) >= bracket.upper) return true;
    const std::size_t at = other++;
    return at >= begin && at - begin < missing;
  });
}

}  // namespace

std::size_t select_by_bisection(const Compensated& tensor, std::size_t k, const base::CounterRandom& random,
                                Selection& into) {
  into.clear();
  const std::uint32_t largest = form_all(tensor);
  if (k == 0 || largest == 0) return 1;
  const Bracket bracket = k < tensor.size() ? bracket_of(tensor, k, largest) : Bracket{};
  // If exactly k elements reach the upper threshold, nothing is drawn.
  const std::uint32_t least = bracket.above == k ? bracket.upper : bracket.lower;
  each_chunk(tensor.size(), [&](Range chunk) { into.add_at_least(least, tensor.elements() + chunk.begin, chunk); });
  keep_drawn(k, bracket, random, into);
  return 1 + bracket.trials + 1;
}

}  // namespace syncopate::compress::sparse
