// Which samples a step takes, and which of them are this rank's: a function of (seed, epoch, position) only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace syncopate::train {

/// How far the training has come. `sample` counts the samples of this epoch that were taken, by all ranks together.
struct Progress {
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;
};

/// The samples of one step: `mine` of the `total` that all ranks take together. A rank may have none.
struct Share {
  std::vector<std::uint32_t> mine;
  std::size_t total = 0;
};

/// The order in which samples are taken: a fresh permutation per epoch, equal for every number of ranks.
class Order final {
 public:
  Order(std::size_t samples, std::uint64_t seed) : samples_(samples), seed_(seed) {}

  /// The next `batch` samples (fewer at the epoch's end), the first ranks taking one more where it does not divide.
  [[nodiscard]] Share share(const Progress& at, std::size_t batch, int rank, int ranks);
  [[nodiscard]] std::size_t samples() const noexcept { return samples_; }

 private:
  void shuffle(std::uint64_t epoch);

  std::size_t samples_;
  std::uint64_t seed_;
  std::uint64_t shuffled_epoch_ = 0;
  std::vector<std::uint32_t> order_;  ///< empty before the first use
};

/// Moves on by one step of `total` samples; at the epoch's end to the next epoch's first sample.
void advance(Progress& progress, std::size_t total, std::size_t samples);

}  // namespace syncopate::train
