// Damage: bits, lengths and full disks, drawn by seed, between runs and during them; no record is ever wrong.
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "cache/disk/store.hpp"
#include "cache/sample.hpp"
#include "random/draw.hpp"
#include "thrown.hpp"

namespace syncopate::cache {
namespace {

using test::of;

constexpr std::uint64_t kPlenty = 1 << 20;

void flip(const std::filesystem::path& path, std::uint64_t at, unsigned char mask) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int was = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(was ^ mask));
}

/// Files of this process end at `bytes` while it lives: the system refuses to write beyond.
class FileLimit final {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{std::min(bytes, before_.rlim_max), before_.rlim_max};
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST(Damage, OfARecordIsFoundAndItsPlaceFilledAgain) {
  const test::Folder folder;
  test::MemorySource source(50, 40, 1, true);
  const test::Job job{.ranks = 2,
                      .options = [&](int) { return of(0, folder.name(), kPlenty); },
                      .after =
                          [&](std::uint64_t epoch) {
                            if (epoch == 0) flip(folder.file(1, "records"), 45, 1);
                          }};
  const auto epochs = test::run(job, source, 3);
  EXPECT_EQ(epochs[1].damaged, 1u);
  EXPECT_EQ(epochs[1].origin, 1u);
  EXPECT_EQ(epochs[2].origin, 0u);
}

TEST(Damage, OfTheHeaderVoidsTheCache) {
  const test::Folder folder;
  test::MemorySource source(50, 40);
  const test::Job job{.ranks = 1, .options = [&](int) { return of(0, folder.name(), kPlenty); }};
  test::run(job, source, 1);
  flip(folder.file(0, "index"), 17, 4);
  (void)source.reads();
  test::run(job, source, 2);
  EXPECT_TRUE(source.each_was_read_once());
}

TEST(Damage, OfARowLosesItsRecordOnly) {
  const test::Folder folder;
  test::MemorySource source(50, 40);
  const test::Job job{.ranks = 1, .options = [&](int) { return of(0, folder.name(), kPlenty); }};
  test::run(job, source, 1);
  flip(folder.file(0, "index"), disk::kHeaderBytes + 3 * disk::kRowBytes + 9, 64);
  std::vector<std::string> lines;
  static_cast<void>(
      disk::Store({folder.name() + "/rank-0", kPlenty}, source,
                  {LogLevel::warning, [&](LogLevel, std::string_view line) { lines.emplace_back(line); }}));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("has lost 1 index rows"), std::string::npos) << lines[0];
  (void)source.reads();
  test::run(job, source, 2);
  EXPECT_EQ(source.reads(), 1u);
}

class FullDisk : public testing::Test {
 protected:
  [[nodiscard]] Options options(std::uint64_t memory_bytes) {
    Options options = of(memory_bytes, folder_.name(), kPlenty);
    options.log = {LogLevel::warning, [this](LogLevel, std::string_view line) { said_.emplace_back(line); }};
    return options;
  }
  const test::Folder folder_;
  test::MemorySource source_{50, 40, 1, true};
  std::vector<std::string> said_;
};

TEST_F(FullDisk, SendsRecordsToMemoryAndIsSaidOnce) {
  const FileLimit limit(1000);
  const auto epochs = test::run({.ranks = 1, .options = [&](int) { return options(kPlenty); }}, source_, 3);
  EXPECT_TRUE(source_.each_was_read_once()) << "memory has the others";
  EXPECT_EQ(epochs[2].origin, 0u);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_NE(said_[0].find("cannot write to the cache in " + folder_.name() + "/rank-0: File too large"),
            std::string::npos)
      << said_[0];
}

TEST_F(FullDisk, WithoutMemoryHasTheOriginReadForWhatItCannotKeep) {
  const FileLimit limit(1000);
  const auto epochs = test::run({.ranks = 1, .options = [&](int) { return options(0); }}, source_, 2);
  EXPECT_EQ(epochs[1].disk, 25u) << "of 40 bytes each in 1000";
  EXPECT_EQ(epochs[1].origin, 25u);
  EXPECT_EQ(said_.size(), 1u);
}

TEST_F(FullDisk, IsSaidAsTheSystemSaysIt) {
  const FileLimit limit(10);
  const auto epochs = test::run({.ranks = 1, .options = [&](int) { return options(0); }}, source_, 2);
  EXPECT_EQ(epochs[1].origin, 50u);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_NE(said_[0].find("File too large"), std::string::npos) << said_[0];
}

TEST_F(FullDisk, AtTheStartLeavesWhatIsThereToBeRead) {
  test::run({.ranks = 1, .options = [&](int) { return of(0, folder_.name(), kPlenty); }}, source_, 1);
  flip(folder_.file(0, "records"), 5, 1);
  (void)source_.reads();
  const FileLimit limit(10);
  test::run({.ranks = 1, .options = [&](int) { return options(0); }}, source_, 2);
  EXPECT_EQ(source_.reads(), 2u) << "the damaged one, in each epoch";
  EXPECT_EQ(said_.size(), 2u) << "the damage, and the full disk";
}

/// In a folder that every user can write to, anybody may have put a link before the cache came.
TEST(Links, OutOfTheFolderAreRefusedByNameAndNothingBehindThemIsTouched) {
  namespace fs = std::filesystem;
  const test::Folder folder, victim;
  const test::MemorySource source(4, 40, 1, true);
  const auto open = [&] {
    disk::Store({folder.name() + "/rank-0", kPlenty}, source, {LogLevel::off, {}}).retain([](std::uint32_t) {
      return true;
    });
  };
  fs::create_directory_symlink(victim.name(), folder.name() + "/rank-0");
  syncopate::test::expect_thrown<SystemFailure>(open, {folder.name() + "/rank-0 is a symbolic link"});
  EXPECT_TRUE(fs::is_empty(victim.name()));
  fs::remove(folder.name() + "/rank-0");
  fs::create_directory(folder.name() + "/rank-0");
  for (const char* name : {"records", "index"}) {
    fs::create_symlink(victim.name() + "/made", folder.file(0, name));
    syncopate::test::expect_thrown<SystemFailure>(open, {std::string(name) + " is a symbolic link"});
    EXPECT_TRUE(fs::is_empty(victim.name()));
    fs::remove(folder.file(0, name));
  }
  EXPECT_NO_THROW(open());
}

/// One job of one to three ranks with its damage, all drawn from the seed.
class Injection final {
 public:
  explicit Injection(std::uint64_t seed) : random_{seed, 0x64616d616765}, source_(40, 60, below(1000)) {
    ranks_ = 1 + static_cast<int>(below(3));
    memory_ = below(2) == 0 ? 0 : below(1500);
  }

  void run() {
    const rlim_t limit = below(3) == 0 ? below(1500) : RLIM_INFINITY;
    {
      const FileLimit full(limit);
      test::run(job(), source_, 2);
    }
    harm();
    test::run(job(), source_, 2);
  }

 private:
  [[nodiscard]] std::uint32_t below(std::uint32_t limit) { return random_.below(limit, drawn_++); }
  [[nodiscard]] test::Job job() {
    return {.ranks = ranks_,
            .options = [this](int) { return of(memory_, folder_.name(), kPlenty); },
            .after = [this](std::uint64_t) { harm(); }};
  }
  void harm() {
    for (auto left = below(4); left > 0; --left)
      harm(folder_.file(static_cast<int>(below(static_cast<std::uint32_t>(ranks_))),
                        below(2) == 0 ? "index" : "records"));
  }
  void harm(const std::filesystem::path& path) {
    std::error_code none;
    const auto size = static_cast<std::uint32_t>(std::filesystem::file_size(path, none));
    if (none || size == 0) return;
    switch (below(5)) {
      case 0:
        return std::filesystem::resize_file(path, below(size));
      case 1:
        return std::filesystem::resize_file(path, size + below(200), none);  // which a full disk refuses
      case 2:
        std::filesystem::remove(path);
        return;
      default:
        return flip(path, below(size), static_cast<unsigned char>(1u << below(8)));
    }
  }

  base::CounterRandom random_;
  std::uint64_t drawn_ = 0;
  const test::Folder folder_;
  test::MemorySource source_;
  int ranks_ = 1;
  std::uint64_t memory_ = 0;
};

TEST(Damage, WhateverIsStruckNoRecordIsWrong) {
  for (const std::uint64_t seed : syncopate::test::seeds(300)) {
    Injection(seed).run();
    ASSERT_FALSE(HasFailure()) << syncopate::test::replay("test_cache", "Damage.WhateverIsStruck*", seed);
  }
}

}  // namespace
}  // namespace syncopate::cache
