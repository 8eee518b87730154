// The input of training: the order of the samples, the sources of their records, and the readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syncopate::input {

/// The position of a training. `sample` counts the samples of this epoch that all ranks together have used.
struct Progress {
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;
};

/// The samples of one step: this rank's (`mine`), and the number for all ranks (`total`). A rank may have none.
struct SampleShare {
  std::vector<std::uint32_t> mine;
  std::size_t total = 0;
};

/// The order in which samples are used: a new permutation per epoch, a pure function of (seed, epoch), independent of
/// the number of ranks. So each rank can compute which samples every other rank uses, and when. Not thread-safe.
class Order final {
 public:
  Order(std::size_t samples, std::uint64_t seed) : samples_(samples), seed_(seed) {}

  /// The samples of `rank` among the next `batch` samples (fewer at the epoch's end). If they do not divide evenly, the
  /// first ranks receive one more. `at.sample` must be below samples().
  [[nodiscard]] SampleShare share(const Progress& at, std::size_t batch, int rank, int ranks);
  [[nodiscard]] std::size_t samples() const noexcept { return samples_; }

 private:
  void shuffle(std::uint64_t epoch);

  std::size_t samples_;
  std::uint64_t seed_;
  std::uint64_t shuffled_epoch_ = 0;
  std::vector<std::uint32_t> order_;  ///< empty before the first use
};

/// Advances by one step of `total` samples; at the epoch's end to the next epoch's first sample.
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
  /// A digest of names, sizes and modification times. If it changes, cached records of the set are invalid.
  [[nodiscard]] virtual std::uint64_t version() const noexcept = 0;
  /// Reads a record into `into`, which has bytes(record) bytes. Throws SystemFailure (cannot be read) or Corrupt (its
  /// length has changed); the message names the record.
  virtual void read(std::size_t record, std::span<std::byte> into) const = 0;
};

/// One step of all ranks. Every rank passes equal steps in the same order.
struct Step {
  Progress at;
  std::size_t batch = 0;  ///< of all ranks together
};

/// The bytes of a record: those of the source; those of the source, and the reader takes their decoded form
/// (Reader::keep); or the decoded form that Reader::keep has taken.
enum class Form : std::uint8_t { encoded, wanted, decoded };

/// A record as it was read.
struct Record {
  std::uint32_t sample = 0;
  std::vector<std::byte> bytes;
  Form form = Form::encoded;
};

/// Reads this rank's records step by step: directly from a Source, or through the distributed cache.
class Reader {
 public:
  virtual ~Reader() = default;
  /// This rank's records of `step`, in the order of its share. Called by one thread. A reader shared by ranks (the
  /// cache) is collective: all ranks call it with the same steps in the same order. Throws what Source::read throws;
  /// PeerLost.
  [[nodiscard]] virtual std::vector<Record> read(const Step& step) = 0;
  /// Takes the decoded form of a record that `read` has returned as Form::wanted, a function of its bytes alone. Later
  /// reads of any rank may return it. Any thread may call it. A reader without room for it drops it.
  virtual void keep(std::uint32_t /*sample*/, std::vector<std::byte> /*decoded*/) {}
};

}  // namespace syncopate::input
