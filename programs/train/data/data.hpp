// Training data: the batches of this rank's steps as tensors, and those for evaluation.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "options.hpp"
#include "syncopate/cache.hpp"
#include "syncopate/dtype.hpp"
#include "syncopate/pipeline.hpp"

namespace syncopate::train {

struct Batch {
  at::Tensor input;                  ///< images: f32 [n, 3, side, side], normalised; text: i64 [n, context]
  at::Tensor target;                 ///< i64 [n] labels, or [n * context] next bytes
  double waited_s = 0;               ///< time spent waiting for the batch
  std::vector<std::string> refused;  ///< images that were replaced by others: file and reason
};

/// Samples [begin, end) of a batch, as views of its memory.
[[nodiscard]] Batch part_of(const Batch& batch, const Range& samples);

/// A sequence of batches. next() throws the errors of reading, and Misuse after the last batch.
class Batches {
 public:
  virtual ~Batches() = default;
  [[nodiscard]] virtual Batch next() = 0;
  /// Number of samples of each epoch by source; empty without a cache.
  [[nodiscard]] virtual std::vector<cache::Counters> tiers() const { return {}; }
};

/// The steps of a run.
struct RunSteps {
  Group& group;  ///< ranks that may share a cache
  input::ReaderRank reader;
  input::Progress from;
  input::Pipeline::Plan plan;  ///< plan of each step, equal on all ranks; called by any thread
  int least_side = 0;          ///< smallest side of images in any step
};

/// This rank's part of the evaluation: of `count` samples, evenly spread over the held-out ones, those in `mine`.
struct HeldOut {
  std::size_t count = 0;
  Range mine;
  std::size_t batch = 0;
  int side = 0;  ///< pixels of images
};

class Data {
 public:
  virtual ~Data() = default;
  /// Pixels of a batch's images each way; 0: text. `resolution` is the value of --resolution (0: not given).
  [[nodiscard]] virtual int side(int resolution) const = 0;
  [[nodiscard]] virtual int classes() const = 0;  ///< of the labels; 0: the model's own number
  [[nodiscard]] virtual std::span<const std::string> class_names() const = 0;  ///< by label, where labels have names
  [[nodiscard]] virtual std::size_t training_samples() const = 0;
  [[nodiscard]] virtual std::size_t evaluation_samples() const = 0;
  /// The batches of this rank, one for each step. A collective. `*this` outlives them.
  [[nodiscard]] virtual std::unique_ptr<Batches> training(const RunSteps& steps) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Batches> evaluation(const HeldOut& held_out) const = 0;
};

/// Images of a folder in one of the library's formats (`syncopate info format`). Their size is --resolution, or else
/// their own; if sizes differ, the model's. Throws Misuse, Corrupt, SystemFailure.
[[nodiscard]] std::unique_ptr<Data> open_pictures(const Model& model, const Options& options,
                                                  const std::string& folder);
/// One file, or all files below a folder, as one text of bytes. A sample is `context` bytes and their successors. The
/// last 5 % of the samples are held out for evaluation. Throws Misuse (no text, or too little), SystemFailure.
[[nodiscard]] std::unique_ptr<Data> open_text(const std::string& path, int context);
/// The data that `model` trains on. --data is a path or, if there is no such file or folder, the name of a data set
/// that Debian packages. Throws Misuse if --data holds the other kind.
[[nodiscard]] std::unique_ptr<Data> open_data(const Model& model, const Options& options);

}  // namespace syncopate::train
