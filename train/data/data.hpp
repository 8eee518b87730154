// Training data: samples addressed by index, turned into batches of tensors.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <span>
#include <string>

#include "model.hpp"

namespace syncopate::train {

struct Batch {
  at::Tensor input;   ///< images: f32 [n, 3, 32, 32], normalised; text: i64 [n, context]
  at::Tensor target;  ///< i64 [n] labels, or [n * context] next bytes
};

/// Key of the random changes made to training images; the same sample is changed equally on whatever rank it lands.
struct Augmentation {
  bool on = false;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
};

using Samples = std::span<const std::uint32_t>;

class Data {
 public:
  virtual ~Data() = default;
  [[nodiscard]] virtual int side() const = 0;  ///< pixels of an image each way; 0: text
  [[nodiscard]] virtual std::size_t training_samples() const = 0;
  [[nodiscard]] virtual std::size_t evaluation_samples() const = 0;
  [[nodiscard]] virtual Batch training(Samples samples, const Augmentation& augmentation) const = 0;
  [[nodiscard]] virtual Batch evaluation(Samples samples) const = 0;
};

/// CIFAR-10's binary format: data_batch_1..5.bin and test_batch.bin in `path` or in its cifar-10-batches-bin.
/// Throws Misuse (missing files, naming them), Corrupt (naming file and offset).
[[nodiscard]] std::unique_ptr<Data> open_cifar10(const std::string& path);
/// Any file, or all files below a folder, as one text of bytes; samples are `context` bytes and their successors.
/// The last 5 % of the samples are held out for evaluation. Throws Misuse (no or too little text), SystemFailure.
[[nodiscard]] std::unique_ptr<Data> open_text(const std::string& path, int context);
/// The data that `model` trains on. Throws Misuse where `path` holds the other kind.
[[nodiscard]] std::unique_ptr<Data> open_data(const Model& model, const std::string& path, int context);

}  // namespace syncopate::train
