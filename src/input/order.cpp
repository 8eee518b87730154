// The seeded order of samples: a Fisher-Yates shuffle whose draws are keyed by (seed, epoch).
#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "syncopate/dtype.hpp"
#include "syncopate/input.hpp"

namespace syncopate::input {
namespace {

constexpr std::uint64_t kOrderDraws = 0x6f72646572;  ///< "order": separates these draws from others of the same seed

}  // namespace

void Order::shuffle(std::uint64_t epoch) {
  order_.resize(samples_);
  std::iota(order_.begin(), order_.end(), 0u);
  const base::CounterRandom random{seed_, kOrderDraws, epoch};
  for (auto i = static_cast<std::uint32_t>(samples_); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i, i)]);
  shuffled_epoch_ = epoch;
}

SampleShare Order::share(const Progress& at, std::size_t batch, int rank, int ranks) {
  if (order_.empty() || shuffled_epoch_ != at.epoch) shuffle(at.epoch);
  const std::size_t total = std::min<std::size_t>(batch, samples_ - at.sample);
  const Range part = even_part(total, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank));
  const auto first = order_.begin() + static_cast<std::ptrdiff_t>(at.sample);
  return {{first + static_cast<std::ptrdiff_t>(part.begin), first + static_cast<std::ptrdiff_t>(part.end)}, total};
}

void advance(Progress& progress, std::size_t total, std::size_t samples) {
  ++progress.step;
  progress.sample += total;
  if (progress.sample < samples) return;
  ++progress.epoch;
  progress.sample = 0;
}

}  // namespace syncopate::input
