// Training data: the batches of this rank's steps as tensors, and those that a model is evaluated on.
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
  double waited_s = 0;               ///< for it
  std::vector<std::string> refused;  ///< images that others stand for: file and reason
};

/// Samples [begin, end) of a batch, in the same memory.
[[nodiscard]] Batch part_of(const Batch& batch, const Range& samples);

/// Batches one after another. next() throws what reading throws, and Misuse after the last one.
class Batches {
 public:
  virtual ~Batches() = default;
  [[nodiscard]] virtual Batch next() = 0;
  /// Where the samples of each epoch came from; none without a cache.
  [[nodiscard]] virtual std::vector<cache::Counters> tiers() const { return {}; }
};

/// The steps of a run.
struct Course {
  Group& group;  ///< whose ranks may read together
  input::Seat seat;
  input::Progress from;
  input::Pipeline::Plan plan;  ///< of each step, equal on all ranks; called by any thread
};

/// This rank's part of the evaluation: of `count` samples, spread evenly over those that are held out, those in `mine`.
struct HeldOut {
  std::size_t count = 0;
  Range mine;
  std::size_t batch = 0;
  int side = 0;  ///< pixels of images
};

class Data {
 public:
  virtual ~Data() = default;
  /// Pixels of a batch's images each way, if --resolution is `resolution` (0: not given); 0: text.
  [[nodiscard]] virtual int side(int resolution) const = 0;
  [[nodiscard]] virtual int classes() const = 0;  ///< that a model must tell apart; 0: its own number
  [[nodiscard]] virtual std::span<const std::string> class_names() const = 0;  ///< by label, where labels have names
  [[nodiscard]] virtual std::size_t training_samples() const = 0;
  [[nodiscard]] virtual std::size_t evaluation_samples() const = 0;
  /// The batches of this rank, a batch for each step. A collective. Data outlive them.
  [[nodiscard]] virtual std::unique_ptr<Batches> training(const Course& course) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Batches> evaluation(const HeldOut& held_out) const = 0;
};

/// Images in one of the library's formats (`syncopate info format`): at --resolution, or as they are, or, where they
/// differ, as the model's own. Throws Misuse, Corrupt, SystemFailure.
[[nodiscard]] std::unique_ptr<Data> open_pictures(const Model& model, const Options& options);
/// Any file, or all files below a folder, as one text of bytes; samples are `context` bytes and their successors.
/// The last 5 % of the samples are held out for evaluation. Throws Misuse (no or too little text), SystemFailure.
[[nodiscard]] std::unique_ptr<Data> open_text(const std::string& path, int context);
/// The data that `model` trains on. Throws Misuse where --data holds the other kind.
[[nodiscard]] std::unique_ptr<Data> open_data(const Model& model, const Options& options);

}  // namespace syncopate::train
