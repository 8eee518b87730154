// bench_masks: how dense the union of the masks of `importance` is on many ranks, next to that of independent masks.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "laws/coders.hpp"

namespace syncopate::bench {
namespace {

constexpr std::size_t kElements = 1 << 14;
constexpr int kSteps = 60, kFirst = 30;  ///< the thresholds have settled by then

/// Weights are equal on all ranks. The gradients of two ranks have this correlation.
struct Case {
  const char* weights;
  double correlation;
};

void run(const Case& of, int ranks, int masks) {
  laws::Coders coders(laws::with_residual(fmt::format("importance:auto:0.017,{},0", masks)),
                      laws::vectors_of({kElements}), ranks);
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  if (std::string_view(of.weights) == "normal") {
    laws::Values weights(kElements);
    for (float& weight : weights) weight = normal(random);
    for (std::size_t rank = 0; rank < coders.size(); ++rank) coders.at(rank).weights = weights;
  }
  const auto common = static_cast<float>(std::sqrt(of.correlation));
  const auto own = static_cast<float>(std::sqrt(1 - of.correlation));
  laws::SelectionReport report;
  laws::Values shared(kElements);
  for (int step = 0; step < kSteps; ++step) {
    for (float& value : shared) value = normal(random);
    coders.fill([&](std::size_t, std::size_t, std::size_t i) { return common * shared[i] + own * normal(random); });
    if (step == kFirst) coders.report = &report;
    coders.step();
  }
  const double all = static_cast<double>(report.elements), mask = static_cast<double>(report.proposed) / all / masks;
  fmt::print(
      R"({{"weights": "{}", "correlation": {}, "ranks": {}, "masks": {}, "mask": {:.5f}, "union": {:.5f}, "independent": {:.5f}}})"
      "\n",
      of.weights, of.correlation, ranks, masks, mask, static_cast<double>(report.sent) / all,
      1 - std::pow(1 - mask, masks));
  std::fflush(stdout);
}

}  // namespace
}  // namespace syncopate::bench

int main() {
  using namespace syncopate::bench;
  for (const Case& of : {Case{"equal", 0}, {"normal", 0}, {"normal", 0.5}})
    for (const int ranks : {4, 8, 96})
      for (const int masks : {1, 2, 4}) run(of, ranks, masks);
}
