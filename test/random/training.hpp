// Training: a drawn synchronizer with its model, its steps on one rank, and what every gradient must become.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "random/draw.hpp"
#include "random/perform.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::test {

struct Training {
  std::uint64_t seed = 0;
  int ranks = 1;
  std::vector<Gradient> model;
  SynchronizerOptions options;
  int steps = 3;
  bool ends_in_weights = false;
  bool is_sparse = false;
  bool is_lossy = false;  ///< more than rounding: ranks end with equal bits, and what these are is not known
};

/// Names are of the shelves; what does not fit together is drawn again.
[[nodiscard]] Training draw_training(Draw& draw, int ranks);
[[nodiscard]] std::string text_of(const Training& training);

/// The values that a rank adds to a gradient in one micro-batch of a step.
struct Backward {
  std::uint64_t seed = 0;
  int step = 0;
  [[nodiscard]] int micro_batches() const {
    return 1 + static_cast<int>(mixed(seed + 31 * static_cast<std::uint64_t>(step)) % 8 / 6);
  }
  /// Whether the rank's last backward pass of the step does not reach the gradient.
  [[nodiscard]] bool misses(std::size_t gradient, int rank) const {
    return mixed(seed ^
                 mixed(gradient * 1000 + static_cast<std::uint64_t>(step) * 10 + static_cast<std::uint64_t>(rank))) %
               5 ==
           0;
  }
  [[nodiscard]] Inputs inputs(const Gradient& gradient, std::size_t index, int micro_batch) const {
    return {mixed(seed + index * 1'000'000 + static_cast<std::uint64_t>(step * 8 + micro_batch)), gradient.dtype,
            Values::whole};
  }
};

/// One rank's part. Throws what the synchronizer throws, or WrongValue.
void train(Group& group, const Training& training, const Ledger& ledger);

}  // namespace syncopate::test
