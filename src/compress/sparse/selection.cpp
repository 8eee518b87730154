// Selection: one pass collects candidates above a sampled threshold; counts of magnitudes select among them.
#include "compress/sparse/selection.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.hpp"
#include "kernel/select.hpp"

namespace syncopate::compress::sparse {

namespace {

constexpr std::size_t kSample = 32768, kNeighbours = 8;
constexpr std::uint32_t kAboveAll = 0x8000'0000;
constexpr unsigned kLowBits = 15;  ///< of the 31 bits of a magnitude; the upper 16 are counted first

/// An exact threshold: selects the elements above `magnitude` and the first `ties` elements equal to it.
struct Threshold {
  std::uint32_t magnitude;
  std::size_t ties;
};

/// The bin of the k-th largest element, and how many elements of the bin are among the k largest.
struct Bin {
  std::uint32_t index;
  std::size_t wanted;
};

Bin bin_of(const std::vector<std::uint32_t>& counts, std::size_t k) {
  std::size_t bin = counts.size();
  while (counts[--bin] < k) k -= counts[bin];
  return {static_cast<std::uint32_t>(bin), k};
}

/// The threshold of the k largest of `elements`, which has at least k elements.
Threshold threshold_of(std::span<const float> elements, std::size_t k) {
  std::vector<std::uint32_t> upper(1U << (31 - kLowBits)), lower(1U << kLowBits);
  for (const float x : elements) ++upper[kernel::magnitude(x) >> kLowBits];
  const Bin high = bin_of(upper, k);
  constexpr std::uint32_t kLowMask = (1U << kLowBits) - 1;
  for (const float x : elements)
    if (const std::uint32_t m = kernel::magnitude(x); m >> kLowBits == high.index) ++lower[m & kLowMask];
  const Bin low = bin_of(lower, high.wanted);
  return {high.index << kLowBits | low.index, low.wanted};
}

/// A threshold that slightly more than k elements reach if the sample is representative; at least 1, because zeros are
/// not selected. Eight neighbours are sampled together, which costs one memory access instead of eight. Neighbours may
/// be correlated, so the estimate of the spread counts them as one sample.
std::uint32_t estimated_threshold(const Compensated& tensor, std::size_t k) {
  const base::CounterRandom random{tensor.size(), k};
  const auto places = static_cast<std::uint32_t>(tensor.size() - kNeighbours + 1);
  std::vector<std::uint32_t> sample;
  sample.reserve(kSample);
  for (std::size_t i = 0; i < kSample / kNeighbours; ++i) {
    const std::size_t first = random.below(places, i);
    for (std::size_t j = first; j < first + kNeighbours; ++j) sample.push_back(kernel::magnitude(tensor.estimate(j)));
  }
  const double expected = static_cast<double>(k) / static_cast<double>(tensor.size()) * kSample;
  const auto rank = static_cast<std::size_t>(expected + 3 * std::sqrt(kNeighbours * expected) + 8);
  if (rank >= kSample) return 1;
  const auto nth = sample.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(sample.begin(), nth, sample.end(), std::greater<>());
  return std::max(*nth, std::uint32_t{1});
}

struct Pass {
  std::uint32_t least;  ///< minimum magnitude of a candidate
  bool forms;           ///< this pass forms the elements
};

/// Collects the candidates. If there are far more than `k`, keeps only the k largest so far and raises the minimum
/// magnitude accordingly.
void collect(const Compensated& tensor, std::size_t k, Pass pass, Selection& into) {
  const std::size_t most = 4 * k + kSample;
  each_chunk(tensor.size(), [&](Range chunk) {
    const float* const elements = pass.forms ? tensor.formed(chunk) : tensor.elements() + chunk.begin;
    into.add_at_least(pass.least, elements, chunk);
    if (into.size() > most) pass.least = std::max(pass.least, into.keep_largest(k));
  });
}

}  // namespace

void Selection::reserve(std::size_t more) {
  const std::size_t needed = size_ + more;
  if (needed <= indices_.size()) return;
  indices_.resize(std::max(needed, 2 * indices_.size()));
  values_.resize(indices_.size());
}

void Selection::add_at_least(std::uint32_t least, const float* elements, Range range) {
  reserve(range.size());
  size_ += kernel::select_at_least(least, {elements, range.size(), static_cast<std::uint32_t>(range.begin)},
                                   {indices_.data() + size_, values_.data() + size_});
}

void Selection::add(std::uint32_t index, float value) {
  reserve(1);
  indices_[size_] = index;
  values_[size_++] = value;
}

std::uint32_t Selection::keep_largest(std::size_t k) {
  Threshold threshold{0, 0};  // k or fewer elements: keeps all except zeros
  if (size_ > k) threshold = k == 0 ? Threshold{kAboveAll, 0} : threshold_of(values(), k);
  keep_where([&threshold](float value) {
    const std::uint32_t m = kernel::magnitude(value);
    if (m == 0 || m < threshold.magnitude) return false;
    if (m > threshold.magnitude) return true;
    if (threshold.ties == 0) return false;
    --threshold.ties;
    return true;
  });
  return threshold.magnitude + 1;
}

std::uint32_t form_all(const Compensated& tensor) {
  std::uint32_t largest = 0;
  each_chunk(tensor.size(), [&](Range chunk) {
    largest = std::max(largest, kernel::largest_magnitude(tensor.formed(chunk), chunk.size()));
  });
  return largest;
}

void select_largest(const Compensated& tensor, std::size_t k, Selection& into) {
  into.clear();
  const std::uint32_t least = k == 0 || tensor.size() <= kSample ? 1 : estimated_threshold(tensor, k);
  collect(tensor, k, {.least = least, .forms = true}, into);
  if (into.size() < k && least > 1) {
    into.clear();
    collect(tensor, k, {.least = 1, .forms = false}, into);
  }
  static_cast<void>(into.keep_largest(k));
}

namespace {

constexpr std::size_t kTrials = 30;
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
