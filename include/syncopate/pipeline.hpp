// The picture pipeline: data sets of pictures, and the threads that prepare steps ahead of training.
#pragma once

#include <array>
#include <chrono>
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

/// How a picture is prepared. Random changes depend only on (seed, epoch, sample), so they are equal on every rank.
struct PictureTransform {
  int side = 0;          ///< pixels of the result, each way
  bool augment = false;  ///< random crop and mirroring; otherwise the centre crop
  bool mirror = true;    ///< with `augment`: mirrors half of the pictures
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint32_t sample = 0;
};

/// Decodes records into pixels. Used by one thread at a time, because it keeps its working memory between pictures.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Writes f32 [3, side, side], red first, normalised. Throws Corrupt with the reason and the position in the record.
  /// A record that declares more than 67 million pixels is refused before memory is allocated. Throws Misuse if this
  /// build lacks the library that reads the record.
  virtual void decode(std::span<const std::byte> record, const PictureTransform& look, float* out) = 0;
  /// The decoded form of `record`, before any random change: a record from which `decode` writes the same bits for
  /// every transform of `least_side` pixels or more, in less time. Empty if it has none. Throws what `decode` throws.
  [[nodiscard]] virtual std::vector<std::byte> whole(std::span<const std::byte> /*record*/, int /*least_side*/) {
    return {};
  }
};

/// Colours from 0 to 1 become (colour - mean) / deviation, for red, green and blue. By default these are the moments of
/// ImageNet's training pictures (Krizhevsky et al. 2012 subtract the mean; published weights are trained with these).
struct Normalisation {
  std::array<float, 3> mean{0.485F, 0.456F, 0.406F};
  std::array<float, 3> deviation{0.229F, 0.224F, 0.225F};
};

/// Returns a decoder of records that are whole JPEG or PNG files, which it recognises by their first bytes. The decoded
/// form is 16 bytes and then 3 bytes per pixel; a JPEG has none if its shorter side is twice `least_side` or more,
/// because libjpeg-turbo decodes some of its cuts at a smaller scale. Throws Misuse for a mean that is not finite and
/// for a deviation that is not above 0.
[[nodiscard]] std::unique_ptr<Decoder> picture_decoder(const Normalisation& normalisation = {});

/// A set of pictures with labels, in two parts.
struct Dataset {
  std::string_view format;           ///< name of an entry of the shelf format/
  std::vector<std::string> classes;  ///< names by label
  int side = 0;                      ///< pixels of each picture, both ways; 0: they differ
  std::shared_ptr<const Source> training, evaluation;
  std::function<std::unique_ptr<Decoder>()> decoder;  ///< creates one for a thread
};

/// Whether `path` looks like a set of a known format.
[[nodiscard]] bool is_dataset(const std::string& path);
/// Throws Misuse (no such folder, unknown format, an empty part), Corrupt, SystemFailure. Messages name the file.
[[nodiscard]] Dataset open_dataset(const std::string& path);

/// The rank that reads, the number of ranks, and the seed of the order.
struct ReaderRank {
  int rank = 0;
  int ranks = 1;
  std::uint64_t seed = 0;
};

/// Returns a reader of this rank's records directly from `source`, which must outlive it.
[[nodiscard]] std::unique_ptr<Reader> direct_reader(const Source& source, const ReaderRank& reader);

/// Treatment of a picture that cannot be decoded. `skip`: the next sample by index that can be decoded replaces it,
/// with its own label and changes, and the batch names the picture. `stop`: its step throws Corrupt.
enum class OnCorrupt : std::uint8_t { skip, stop };

/// The batch of a step on all ranks together, and the side of its pictures in pixels.
struct StepPlan {
  std::size_t batch = 0;
  int side = 0;
};

struct PipelineOptions {
  int threads = 1;        ///< decoding threads; one more reads
  std::size_t ahead = 2;  ///< most steps held: read, being decoded, or ready
  bool augment = false;
  std::uint64_t seed = 0;
  OnCorrupt on_corrupt = OnCorrupt::skip;
  int least_side =
      0;  ///< smallest side of any step, from which pictures are decoded for Reader::keep; 0: unknown, none
  std::chrono::milliseconds timeout{600'000};  ///< limit of `next`: a read that hangs is an error
};

/// This rank's pictures of one step.
struct PictureBatch {
  std::shared_ptr<float> pixels;  ///< f32 [count, 3, side, side], aligned to 64 bytes
  std::vector<std::int64_t> labels;
  int side = 0;
  Progress at;                       ///< the step
  std::vector<std::string> refused;  ///< "FILE: reason" of replaced pictures, each reported once
  double waited_s = 0;               ///< time that the caller waited
  [[nodiscard]] std::size_t count() const noexcept { return labels.size(); }
};

/// Reads, decodes and changes the pictures of steps on its own threads, ahead of the caller. Holds the records and
/// pixels of at most `ahead` steps. Uses source, decoders and reader until it is destroyed.
class Pipeline final {
 public:
  /// Returns the plan of the step at a position, nullopt after the last step. The reading thread calls it once for each
  /// step in order. Ranks that read together must pass the same function.
  using Plan = std::function<std::optional<StepPlan>(const Progress&)>;

  Pipeline(const Dataset& set, std::shared_ptr<const Source> source, std::unique_ptr<Reader> reader,
           const PipelineOptions& options);
  ~Pipeline();  ///< drops unfinished steps; waits for pictures being decoded and for a read in progress
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Starts with the step at `from`, at any epoch and sample. Call it once.
  void start(const Progress& from, Plan plan);
  /// Returns the next step's pictures. Throws what reading or decoding that step threw, also in all later calls; Misuse
  /// after the last step; SystemFailure after PipelineOptions::timeout. Called by one thread.
  [[nodiscard]] PictureBatch next();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace syncopate::input
