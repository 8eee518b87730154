// The pipeline of pictures: sets of them, and the threads that prepare steps ahead of training.
// training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/input.hpp"

namespace syncopate::input {

/// What a picture is prepared for. Random changes are a function of (seed, epoch, sample) alone: equal on every rank.
struct Look {
  int side = 0;          ///< pixels of the result, each way
  bool augment = false;  ///< random crop and mirror image; else the middle
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint32_t sample = 0;
};

/// Turns encoded records into numbers. One thread uses it at a time: it keeps its working memory between pictures.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Writes f32 [3, side, side], red first, normalised. Throws Corrupt that says why, and where in the record; a record
  /// that declares more than 67 million pixels is refused before memory is taken. Throws Misuse where this build lacks
  /// the library that reads the record.
  virtual void decode(std::span<const std::byte> record, const Look& look, float* out) = 0;
};

/// A set of pictures with labels, in two parts.
struct Dataset {
  std::string_view format;           ///< name of an entry of the shelf format/
  std::vector<std::string> classes;  ///< by label
  int side = 0;                      ///< pixels of each picture, both ways; 0: they differ
  std::shared_ptr<const Source> training, evaluation;
  std::function<std::unique_ptr<Decoder>()> decoder;  ///< makes one for a thread
};

/// Whether `path` looks like a set of any format.
[[nodiscard]] bool is_dataset(const std::string& path);
/// Throws Misuse (no such folder, no format that recognises it, an empty part), Corrupt, SystemFailure, naming files.
[[nodiscard]] Dataset open_dataset(const std::string& path);

/// Which rank of how many reads; the key of the order.
struct Seat {
  int rank = 0;
  int ranks = 1;
  std::uint64_t seed = 0;
};

/// Reads this rank's records straight from `source`, which must outlive it.
[[nodiscard]] std::unique_ptr<Reader> direct_reader(const Source& source, const Seat& seat);

/// What becomes of a picture that cannot be decoded. `skip`: the next sample by index that can be decoded takes its
/// place, with its own label and changes, and the picture is named in the batch. `stop`: its step throws Corrupt.
enum class OnCorrupt : std::uint8_t { skip, stop };

/// The size of a step, of all ranks together, and of its pictures.
struct StepPlan {
  std::size_t batch = 0;
  int side = 0;
};

struct PipelineOptions {
  int threads = 1;        ///< that decode; one more reads
  std::size_t ahead = 2;  ///< steps held at most: read, in work or ready
  bool augment = false;
  std::uint64_t seed = 0;
  OnCorrupt on_corrupt = OnCorrupt::skip;
};

/// This rank's pictures of one step.
struct PictureBatch {
  std::shared_ptr<float> pixels;  ///< f32 [count, 3, side, side], aligned to 64 bytes
  std::vector<std::int64_t> labels;
  int side = 0;
  Progress at;                       ///< the step
  std::vector<std::string> refused;  ///< "FILE: why" of pictures replaced, each once in a pipeline's life
  double waited_s = 0;               ///< that the caller spent waiting
  [[nodiscard]] std::size_t count() const noexcept { return labels.size(); }
};

/// Reads, decodes and changes the pictures of steps on threads of its own, ahead of who asks for them. Holds `ahead`
/// steps at most: their records and their pixels. Source, decoders and reader are used until it is destroyed.
class Pipeline final {
 public:
  /// The plan of the step at a position, nullopt after the last step. Called once for each step in order, by the thread
  /// that reads. On all ranks that read together it must be the same function.
  using Plan = std::function<std::optional<StepPlan>(const Progress&)>;

  Pipeline(const Dataset& set, std::shared_ptr<const Source> source, std::unique_ptr<Reader> reader,
           const PipelineOptions& options);
  ~Pipeline();  ///< lets go of steps in work; waits for a picture in decoding and for a read that has begun
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Begins with the step at `from`, whichever epoch and sample that is. Once.
  void start(const Progress& from, Plan plan);
  /// The next step's pictures. Throws what reading or decoding that step threw, and again from then on; Misuse after
  /// the last step. Called by one thread.
  [[nodiscard]] PictureBatch next();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace syncopate::input
