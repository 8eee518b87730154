// Sample: a data set in memory that counts its reads, and jobs of ranks that take epochs of it and compare every byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/random.hpp"
#include "ranks.hpp"
#include "syncopate/cache.hpp"
#include "syncopate/error.hpp"

namespace syncopate::cache::test {

/// Records of 0 to `longest` bytes, drawn by `version`; or of `longest` all, where `is_even`.
class MemorySource final : public input::Source {
 public:
  MemorySource(std::size_t records, std::size_t longest, std::uint64_t version = 1, bool is_even = false)
      : longest_(longest), version_(version), is_even_(is_even), reads_(records) {}

  [[nodiscard]] std::size_t records() const noexcept override { return reads_.size(); }
  [[nodiscard]] std::size_t bytes(std::size_t record) const override {
    return is_even_ ? longest_ : base::CounterRandom{version_}.below(static_cast<std::uint32_t>(longest_ + 1), record);
  }
  [[nodiscard]] std::int64_t label(std::size_t) const override { return 0; }
  [[nodiscard]] std::string name(std::size_t record) const override { return "record " + std::to_string(record); }
  [[nodiscard]] std::uint64_t version() const noexcept override { return version_; }
  void read(std::size_t record, std::span<std::byte> into) const override {
    ++reads_[record];
    if (refuses(record)) throw SystemFailure(name(record) + " cannot be read");
    const auto right = content(record);
    std::ranges::copy(right, into.begin());
  }

  [[nodiscard]] std::vector<std::byte> content(std::size_t record) const {
    std::vector<std::byte> all(bytes(record));
    const base::CounterRandom random{version_, record};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(random.bits(i));
    return all;
  }
  [[nodiscard]] std::size_t total() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < records(); ++i) sum += bytes(i);
    return sum;
  }
  /// Reads since the last call.
  [[nodiscard]] std::size_t reads() {
    std::size_t sum = 0;
    for (auto& count : reads_) sum += count.exchange(0);
    return sum;
  }
  [[nodiscard]] bool each_was_read_once() const {
    return std::ranges::all_of(reads_, [](const auto& count) { return count == 1; });
  }

  std::function<bool(std::size_t record)> refuses = [](std::size_t) { return false; };

 private:
  std::size_t longest_;
  std::uint64_t version_;
  bool is_even_;
  mutable std::vector<std::atomic<std::size_t>> reads_;
};

/// Takes one epoch, compares every record with its source, and returns this rank's row of it.
inline Counters take_epoch(Cache& cache, const MemorySource& source, std::uint64_t epoch, std::size_t batch = 7) {
  for (input::Progress at{.epoch = epoch}; at.epoch == epoch;) {
    for (const input::Record& record : cache.read({at, batch}))
      EXPECT_EQ(record.bytes, source.content(record.sample)) << "epoch " << epoch << ", record " << record.sample;
    input::advance(at, std::min<std::size_t>(batch, source.records() - at.sample), source.records());
  }
  return cache.counters().back();
}

/// Sums over ranks.
struct Sums {
  std::uint64_t memory = 0, disk = 0, peers = 0, origin = 0, damaged = 0;
};

/// A job of some ranks as threads; `each` may change a rank's options.
struct Job {
  int ranks = 1;
  std::uint64_t seed = 7;
  std::function<Options(int rank)> options;
  std::function<void(std::uint64_t epoch)> after = [](std::uint64_t) {};  ///< on rank 0, while the others wait
};

inline Options of(std::uint64_t memory_bytes, std::string folder = {}, std::uint64_t disk_bytes = 0) {
  return {
      .memory_bytes = memory_bytes, .folder = std::move(folder), .disk_bytes = disk_bytes, .log = {LogLevel::off, {}}};
}

/// Runs `epochs` epochs and returns their sums. All ranks read `source`.
std::vector<Sums> run(const Job& job, const MemorySource& source, std::uint64_t epochs);

/// A folder for this test, removed with it.
class Folder final {
 public:
  Folder() : name_((std::filesystem::temp_directory_path() / "syncopate-cache-XXXXXX").string()) {
    if (::mkdtemp(name_.data()) == nullptr) throw std::runtime_error("no folder");
  }
  ~Folder() { std::filesystem::remove_all(name_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::filesystem::path file(int rank, const char* file) const {
    return std::filesystem::path(name_) / ("rank-" + std::to_string(rank)) / file;
  }

 private:
  std::string name_;
};

}  // namespace syncopate::cache::test
