// The input of training: the order in which samples are taken, where their records come from, and who reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syncopate::input {

/// How far a training has come. `sample` counts the samples of this epoch that were taken, by all ranks together.
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

/// The order in which samples are taken: a fresh permutation per epoch, a pure function of (seed, epoch), equal for
/// every number of ranks. So each rank can tell which samples every other one takes, and when. Not thread-safe.
class Order final {
 public:
  Order(std::size_t samples, std::uint64_t seed) : samples_(samples), seed_(seed) {}

  /// What `rank` of `ranks` takes of the next `batch` samples (fewer at the epoch's end); the first ranks take one more
  /// where it does not divide. `at.sample` is below samples().
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

/// A set of records (encoded samples: a JPEG file, a line of pixels) addressed by index, the same on every rank. All
/// functions may be called from several threads at a time.
class Source {
 public:
  virtual ~Source() = default;
  [[nodiscard]] virtual std::size_t records() const noexcept = 0;
  /// Bytes of a record, known without reading it. A record has less than 4 GiB.
  [[nodiscard]] virtual std::size_t bytes(std::size_t record) const = 0;
  /// The class of a record; 0 in sets that have none.
  [[nodiscard]] virtual std::int64_t label(std::size_t record) const = 0;
  /// Where the record comes from, for messages: "FILE" or "FILE at offset N".
  [[nodiscard]] virtual std::string name(std::size_t record) const = 0;
  /// A digest of names, sizes and times of change: another value means another set, whose cached records are void.
  [[nodiscard]] virtual std::uint64_t version() const noexcept = 0;
  /// Reads a record into `into`, which has bytes(record) bytes. Throws SystemFailure (cannot be read), Corrupt (has
  /// another length now), each naming the record.
  virtual void read(std::size_t record, std::span<std::byte> into) const = 0;
};

/// What all ranks take in one step. Ranks pass equal steps in the same order.
struct Step {
  Progress at;
  std::size_t batch = 0;  ///< of all ranks together
};

/// A record as it was read. `bytes` belongs to the receiver.
struct Record {
  std::uint32_t sample = 0;
  std::vector<std::byte> bytes;
};

/// Gives this rank's records of one step after another: straight from a Source, or through a cache that all ranks form.
class Reader {
 public:
  virtual ~Reader() = default;
  /// This rank's records of `step`, in the order of its share. Called by one thread. Where ranks read together it is
  /// collective: all call it with the same steps in the same order. Throws what Source::read throws; PeerLost.
  [[nodiscard]] virtual std::vector<Record> read(const Step& step) = 0;
};

}  // namespace syncopate::input
