// Deep gradient compression: sends approximately the k largest elements, by a threshold estimated from a sample.
// Lin et al., ICLR 2018, section 3; the selection follows the authors' code. The full method also uses feedback
// `momentum` and a warm-up of the density.
//
//   v = g + r;  t = the ceil(d s)-th largest |v| of a sample of s = max(n/100, 2/d) elements at an odd stride
//   S = all |v| >= t;  while |S| < 0.8 k: t = 0.8 t, S again, at most 10 times;  k = ceil(d n)
//   |S| > 1.3 k: the k largest of S;  else |S| > k: the first k of S;  send (S, v[S]);  r'[S] = 0
//   size:  as for topk: at d = 0.01 about 8.1 + 32 bits per selected element; N - 1 such packets reach every rank
#include <cmath>
#include <functional>

#include "compress/sparse/density.hpp"
#include "kernel/select.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr double kFewest = 0.8, kMost = 1.3;  ///< accepted number of elements, as multiples of k
constexpr int kTrials = 10;

/// The sample's threshold as a finite magnitude above zero, because zeros are not sent.
std::uint32_t sampled_threshold(const Compensated& tensor, double density, const base::CounterRandom& random) {
  const double wanted = std::max(0.01 * static_cast<double>(tensor.size()), 2 / density);
  const auto stride = static_cast<std::size_t>(std::max(1.0, static_cast<double>(tensor.size()) / wanted)) | 1U;
  std::vector<std::uint32_t> sample;
  for (std::size_t i = random.below(static_cast<std::uint32_t>(stride), 0); i < tensor.size(); i += stride)
    sample.push_back(kernel::magnitude(tensor.estimate(i)));
  if (sample.empty()) return 1;
  const auto nth = sample.begin() + static_cast<std::ptrdiff_t>(sparse::selected_of(density, sample.size())) - 1;
  std::nth_element(sample.begin(), nth, sample.end(), std::greater<>());
  return std::clamp(*nth, std::uint32_t{1}, kernel::kNotFinite - 1);
}

std::uint32_t lowered(std::uint32_t threshold) {
  const auto lower = static_cast<float>(kFewest * std::bit_cast<float>(threshold));
  return std::max(kernel::magnitude(lower), std::uint32_t{1});
}

void collect(const Compensated& tensor, std::uint32_t threshold, bool forms, sparse::Selection& into) {
  into.clear();
  sparse::each_chunk(tensor.size(), [&](Range chunk) {
    into.add_at_least(threshold, forms ? tensor.formed(chunk) : tensor.elements() + chunk.begin, chunk);
  });
}

void select(const Compensated& tensor, double density, const base::CounterRandom& random, sparse::Selection& into) {
  const std::size_t k = sparse::selected_of(density, tensor.size());
  std::uint32_t threshold = sampled_threshold(tensor, density, random);
  collect(tensor, threshold, true, into);
  const auto reached = [&into] { return static_cast<double>(into.size()); };
  for (int trial = 0; trial < kTrials && reached() < kFewest * static_cast<double>(k) && threshold > 1; ++trial) {
    threshold = lowered(threshold);
    collect(tensor, threshold, false, into);
  }
  // Values that are not finite count as the largest and must be sent, so that every rank detects them.
  const bool has_largest = kernel::largest_magnitude(into.values().data(), into.size()) >= kernel::kNotFinite;
  if (has_largest || reached() > kMost * static_cast<double>(k))
    static_cast<void>(into.keep_largest(k));
  else
    into.keep_first(k);
}

}  // namespace

extern constinit const Codec dgc = sparse::density_codec({
    .name = "dgc",
    .summary = "Approximately the largest elements, by a threshold from a sample: `dgc:DENSITY`",
    .source = "Lin et al., \"Deep gradient compression\", ICLR 2018",
    .combines = {.gather = true},
    .coder = sparse::density_coder<select>,
});

}  // namespace syncopate::compress::codec
