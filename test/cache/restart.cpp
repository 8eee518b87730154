// Restarts: what disks hold from an earlier run counts, for any number of ranks; another version of the set voids it.
#include "cache/disk/store.hpp"
#include "cache/sample.hpp"
#include "thrown.hpp"

namespace syncopate::cache {
namespace {

using test::of;

class Restart : public testing::Test {
 protected:
  [[nodiscard]] test::Job job(int ranks) const {
    return {.ranks = ranks, .options = [this](int) { return of(memory_, folder_.name(), kPlenty); }};
  }
  std::vector<test::Sums> run(int ranks, std::uint64_t epochs = 1) { return test::run(job(ranks), source_, epochs); }

  static constexpr std::uint64_t kPlenty = 1 << 20;
  const test::Folder folder_;
  std::uint64_t memory_ = 0;
  test::MemorySource source_{100, 50};
};

TEST_F(Restart, WithTheSameRanksReadsNothingFromTheOrigin) {
  run(3);
  EXPECT_EQ(source_.reads(), 100u);
  const auto epochs = run(3);
  EXPECT_EQ(source_.reads(), 0u);
  EXPECT_EQ(epochs[0].disk + epochs[0].peers, 100u);
}

TEST_F(Restart, WhatMemoryHadIsOnDiskTooWhereThatHasRoom) {
  memory_ = kPlenty;
  const auto before = run(2, 2);
  EXPECT_EQ(before[1].disk, 0u);
  (void)source_.reads();
  const auto after = run(2, 2);
  EXPECT_EQ(source_.reads(), 0u);
  EXPECT_GT(after[0].disk, 0u);
  EXPECT_EQ(after[1].disk, 0u) << "read once, it is in memory";
}

TEST_F(Restart, WithOtherNumbersOfRanksUsesWhatTheirDisksHold) {
  run(2);
  EXPECT_EQ(source_.reads(), 100u);
  run(4);
  EXPECT_EQ(source_.reads(), 0u) << "all is on the disks of ranks 0 and 1";
  std::filesystem::remove_all(folder_.name());
  run(4);
  (void)source_.reads();
  run(2, 2);
  const std::size_t missed = source_.reads();
  EXPECT_GT(missed, 30u) << "what only ranks 2 and 3 hold";
  EXPECT_LT(missed, 70u);
  run(4, 2);
  EXPECT_EQ(source_.reads(), 0u) << "some of it twice";
  run(1);
  EXPECT_LT(source_.reads(), 100u);
}

TEST_F(Restart, ARecordOnTwoDisksIsHeldByOneRankAndTheOthersPlaceIsFree) {
  run(1);
  std::filesystem::copy(folder_.name() + "/rank-0", folder_.name() + "/rank-1");
  (void)source_.reads();
  run(2);
  EXPECT_EQ(source_.reads(), 0u);
  for (const int rank : {0, 1})
    EXPECT_EQ((std::filesystem::file_size(folder_.file(rank, "index")) - disk::kHeaderBytes) / disk::kRowBytes, 50u)
        << "each holds as many bytes as the other";
}

TEST_F(Restart, WithAnotherVersionOfTheSetReadsAllAgain) {
  run(2);
  const test::MemorySource changed(100, 50, 2);
  test::run(job(2), changed, 1);
  EXPECT_TRUE(changed.each_was_read_once());
  (void)source_.reads();
  run(2);
  EXPECT_EQ(source_.reads(), 100u);
}

TEST_F(Restart, WithASmallerBudgetKeepsWithinIt) {
  run(1);
  (void)source_.reads();
  const test::Job less{.ranks = 1, .options = [&](int) { return of(0, folder_.name(), 1500); }};
  test::run(less, source_, 1);
  EXPECT_GT(source_.reads(), 50u);
  EXPECT_LE(
      std::filesystem::file_size(folder_.file(0, "index")) + std::filesystem::file_size(folder_.file(0, "records")),
      1500 + disk::kHeaderBytes);
}

TEST_F(Restart, AFolderInUseIsRefusedByName) {
  syncopate::test::on_groups(1, [&](Group& group) {
    const auto first = Cache::form(group, source_, 1, of(0, folder_.name(), kPlenty));
    syncopate::test::expect_thrown<SystemFailure>(
        [&] { return Cache::form(group, source_, 1, of(0, folder_.name(), kPlenty)); },
        {folder_.name() + "/rank-0 is in use"});
  });
}

TEST_F(Restart, TheOtherRanksReadWhyAFolderCannotBeUsed) {
  const disk::Store first({folder_.name() + "/rank-0", kPlenty}, source_, {});
  syncopate::test::on_groups(2, [&](Group& group) {
    syncopate::test::expect_thrown([&] { return Cache::form(group, source_, 1, of(0, folder_.name(), kPlenty)); },
                                   {folder_.name() + "/rank-0 is in use by another job"});
  });
}

// All records have 50 bytes; the file has room for two.
TEST(Index, BelievesNoRowThatCannotBeRight) {
  const test::MemorySource set(10, 50, 1, true);
  const auto damaged = [&](const disk::Row& row) {
    const disk::ParsedIndex index = disk::parse_index(disk::index_of(set, {row}), set, 100);
    EXPECT_TRUE(index.is_of_set);
    EXPECT_EQ(index.rows.size() + index.damaged, 1U);
    return index.damaged == 1;
  };
  EXPECT_FALSE(damaged({.sample = 0, .length = 50, .offset = 0}));
  EXPECT_FALSE(damaged({.sample = 9, .length = 50, .offset = 50})) << "the last record, at the end of the file";
  EXPECT_TRUE(damaged({.sample = 10, .length = 50, .offset = 0})) << "the set has ten records";
  EXPECT_TRUE(damaged({.sample = 0xffffffff, .length = 50, .offset = 0}));
  EXPECT_TRUE(damaged({.sample = 9, .length = 50, .offset = 51})) << "it ends behind the file";
  EXPECT_TRUE(damaged({.sample = 9, .length = 50, .offset = ~std::uint64_t{0} - 10})) << "its end is beyond 64 bits";
  EXPECT_TRUE(damaged({.sample = 9, .length = 49, .offset = 0}));
  EXPECT_TRUE(damaged({.sample = 9, .length = 51, .offset = 0}));
}

TEST(Index, BelievesNoRowThatIsLongerThanTheFile) {
  const test::MemorySource set(10, 50, 1, true);
  const auto bytes = disk::index_of(set, {{.sample = 0, .length = 50, .offset = 0}});
  EXPECT_EQ(disk::parse_index(bytes, set, 50).rows.size(), 1U);
  EXPECT_EQ(disk::parse_index(bytes, set, 49).rows.size(), 0U);
  EXPECT_EQ(disk::parse_index(bytes, set, 0).rows.size(), 0U);
}

TEST(Index, MayHaveNoRowsAndCountsAnIncompleteOneAsDamaged) {
  const test::MemorySource set(10, 50, 1, true);
  const disk::ParsedIndex empty = disk::parse_index(disk::index_of(set, {}), set, 0);
  EXPECT_TRUE(empty.is_of_set);
  EXPECT_EQ(empty.damaged, 0U);
  auto bytes = disk::index_of(set, {{.sample = 0, .length = 50, .offset = 0}});
  for (const auto& [change, rows] : {std::pair{-1, 0U}, {0, 1U}, {1, 1U}}) {
    std::vector<std::byte> changed = bytes;
    changed.resize(static_cast<std::size_t>(static_cast<std::ptrdiff_t>(bytes.size()) + change));
    const disk::ParsedIndex index = disk::parse_index(changed, set, 50);
    EXPECT_EQ(index.rows.size(), rows) << change;
    EXPECT_EQ(index.damaged, change == 0 ? 0U : 1U) << change;
  }
}

// Gaps of 1 byte at offset 0 and of 4 bytes at offset 11; the records end at 20.
TEST(FreeSpace, IsTheSmallestGapThatFitsAndThenTheEndUpToTheLimit) {
  disk::FreeSpace space({{.sample = 0, .length = 10, .offset = 1}, {.sample = 1, .length = 5, .offset = 15}});
  EXPECT_EQ(space.take(5, 24), std::nullopt);
  EXPECT_EQ(space.take(5, 25), 20U);
  EXPECT_EQ(space.take(3, 25), 11U);
  EXPECT_EQ(space.take(1, 25), 0U);
  EXPECT_EQ(space.take(1, 25), 14U) << "what the record of 3 bytes left";
  EXPECT_EQ(space.take(1, 25), std::nullopt);
  EXPECT_EQ(space.take(0, 25), 25U) << "a record may be empty";
}

TEST_F(Restart, RowsOfAnEarlierRunAreFoundUpToTheBudget) {
  const test::MemorySource set(10, 50, 1, true);
  const disk::Place place{folder_.name() + "/rank-0", kPlenty};
  {
    disk::Store store(place, set, {});
    store.retain([](std::uint32_t) { return true; });
    for (const std::uint32_t sample : {3U, 4U}) ASSERT_TRUE(store.keep(sample, set.content(sample)));
  }
  EXPECT_EQ(disk::Store({place.folder, 164}, set, {}).samples(), (std::vector<std::uint32_t>{3, 4}));
  EXPECT_EQ(disk::Store({place.folder, 163}, set, {}).samples(), (std::vector<std::uint32_t>{3}));
}

TEST_F(Restart, AnEmptyRecordTakesARow) {
  const test::MemorySource set(10, 0, 1, true);
  for (const std::uint64_t budget : {disk::kRowBytes - 1, disk::kRowBytes}) {
    disk::Store store({folder_.name() + "/rank-0", budget}, set, {});
    store.retain([](std::uint32_t) { return true; });
    EXPECT_EQ(store.keep(0, {}), budget == disk::kRowBytes);
  }
}

// Two records of 50 bytes and their rows of 32 take 164 bytes.
TEST_F(Restart, ABudgetIsUsedToItsLastByteAndNotBeyondIt) {
  const test::MemorySource set(10, 50, 1, true);
  for (const auto& [budget, kept] : {std::pair{164, 2U}, std::pair{163, 1U}, std::pair{82, 1U}, std::pair{81, 0U}}) {
    for (const std::uint64_t first : {static_cast<std::uint64_t>(budget), kPlenty}) {
      std::filesystem::remove_all(folder_.name());
      const auto run_with = [&](std::uint64_t bytes) {
        test::run({.ranks = 1, .options = [&, bytes](int) { return of(0, folder_.name(), bytes); }}, set, 1);
      };
      run_with(first);
      run_with(static_cast<std::uint64_t>(budget));
      const auto rows = (std::filesystem::file_size(folder_.file(0, "index")) - disk::kHeaderBytes) / disk::kRowBytes;
      EXPECT_EQ(rows, kept) << budget << " bytes, after a run with " << first;
    }
  }
}

TEST(Index, KeepsOneOfRowsThatOverlapOrHaveTheSameSample) {
  const test::MemorySource set(10, 50, 1, true);
  const auto kept = [&](const std::vector<disk::Row>& rows) {
    std::vector<std::uint32_t> samples;
    for (const disk::Row& row : disk::parse_index(disk::index_of(set, rows), set, 200).rows)
      samples.push_back(row.sample);
    return samples;
  };
  using Samples = std::vector<std::uint32_t>;
  EXPECT_EQ(kept({{1, 50, 50, 0}, {2, 50, 0, 0}}), (Samples{2, 1})) << "side by side, in the order of their offsets";
  EXPECT_EQ(kept({{1, 50, 49, 0}, {2, 50, 0, 0}}), (Samples{2})) << "one byte is in both";
  EXPECT_EQ(kept({{1, 50, 0, 0}, {1, 50, 50, 0}}), (Samples{1})) << "the same sample twice";
}

TEST_F(Restart, AProcessKilledBetweenARecordAndItsRowLosesThatRecordOnly) {
  run(1);
  const auto index = folder_.file(0, "index");
  std::filesystem::resize_file(index, std::filesystem::file_size(index) - 5);
  (void)source_.reads();
  run(1);
  EXPECT_EQ(source_.reads(), 1u);
  run(1);
  EXPECT_EQ(source_.reads(), 0u);
}

}  // namespace
}  // namespace syncopate::cache
