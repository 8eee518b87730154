// Tiers: from the second epoch on, what the ranks hold together comes from them; the bytes are the origin's, always.
#include "cache/disk/store.hpp"
#include "cache/memory.hpp"
#include "cache/partition.hpp"
#include "cache/sample.hpp"
#include "syncopate/collective.hpp"
#include "thrown.hpp"

namespace syncopate::cache {
namespace {

using test::of;

TEST(Tiers, TheOriginIsReadOnceForEachRecordOverEveryTransport) {
  for (const int ranks : {1, 2, 3}) {
    test::MemorySource source(101, 60);
    syncopate::test::on_every_transport(ranks, [&](Group& group) {
      if (group.rank() == 0) (void)source.reads();
      barrier(group);
      const auto cache = Cache::form(group, source, 3, of(source.total()));
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        const Counters row = test::take_epoch(*cache, source, epoch);
        EXPECT_EQ(row.epoch, epoch);
        if (epoch > 0) {
          EXPECT_EQ(row.origin.records, 0u) << "epoch " << epoch;
        }
      }
      barrier(group);
      EXPECT_TRUE(source.each_was_read_once());
      barrier(group);
    });
  }
}

TEST(Tiers, MemoryAndDiskOfAllRanksTogetherHoldTheSet) {
  const test::Folder folder;
  test::MemorySource source(120, 40, 1, true);  // each rank: 20 records in memory, 20 on disk
  const test::Job job{.ranks = 3, .options = [&](int) { return of(20 * 40, folder.name(), 20 * disk::cost_of(40)); }};
  const auto epochs = run(job, source, 3);
  EXPECT_TRUE(source.each_was_read_once());
  EXPECT_EQ(epochs[0].origin, 120u);
  for (const std::size_t epoch : {1, 2}) {
    EXPECT_EQ(epochs[epoch].origin, 0u);
    EXPECT_EQ(epochs[epoch].memory + epochs[epoch].disk + epochs[epoch].peers, 120u);
    EXPECT_GT(epochs[epoch].memory, 0u);
    EXPECT_GT(epochs[epoch].disk, 0u);
  }
}

TEST(Tiers, ASetLargerThanAllOfThemIsHitAsOftenAsItIsHeld) {
  test::MemorySource source(200, 50, 1, true);
  const test::Job job{.ranks = 2, .options = [](int rank) { return of(rank == 0 ? 30 * 50 : 70 * 50); }};
  const auto epochs = run(job, source, 4);
  for (std::size_t epoch = 1; epoch < 4; ++epoch) EXPECT_EQ(epochs[epoch].origin, 100u) << "half is held";
}

TEST(Tiers, ARankWithoutRoomHasTheOthersHoldWhatItTakes) {
  test::MemorySource source(60, 50);
  const test::Job job{.ranks = 3, .options = [&](int rank) { return of(rank == 1 ? source.total() : 0); }};
  const auto epochs = run(job, source, 2);
  EXPECT_TRUE(source.each_was_read_once());
  EXPECT_EQ(epochs[1].origin, 0u);
}

/// Workers of a parameter server move at their own pace, and form no group.
TEST(Tiers, AReaderOfAPartOfEveryStepHoldsWhatItHasReadItself) {
  const test::Folder folder;
  test::MemorySource source(60, 50, 1, true);
  std::vector<std::size_t> taken(60);
  for (const int part : {1, 0}) {  // one after the other: none waits for another
    const auto groups = Group::threads(1);
    Options options = of(part == 0 ? source.total() : 0, folder.name(), part == 0 ? 0 : 60 * disk::cost_of(50));
    options.part = part;
    options.parts = 2;
    const auto cache = Cache::form(*groups.front(), source, 3, options);
    for (int time = 0; time < 2; ++time)
      for (input::Progress at; at.epoch == 0; input::advance(at, std::min<std::size_t>(8, 60 - at.sample), 60))
        for (const input::Record& record : cache->read({at, 8})) {
          EXPECT_EQ(record.bytes, source.content(record.sample));
          taken[record.sample] += time == 0 ? 1 : 0;
        }
    const Counters row = cache->counters().front();
    EXPECT_EQ(row.origin.records, 30U);
    EXPECT_EQ((part == 0 ? row.memory : row.disk).records, 30U);
  }
  EXPECT_EQ(taken, std::vector<std::size_t>(60, 1)) << "the parts are disjoint";
  EXPECT_TRUE(std::filesystem::exists(folder.name() + "/rank-1"));
}

TEST(Tiers, WithoutAnyRoomEveryRecordComesFromTheOrigin) {
  test::MemorySource source(60, 50, 1, true);
  const auto epochs = run({.ranks = 2, .options = [](int) { return of(0); }}, source, 2);
  EXPECT_EQ(source.reads(), 120u);
  EXPECT_EQ(epochs[1].origin, 60u);
}

TEST(Tiers, EveryRecordIsCountedOnceWithItsBytes) {
  const test::Folder folder;
  const test::MemorySource source(90, 50);
  std::atomic<std::uint64_t> records = 0, bytes = 0;
  syncopate::test::on_groups(3, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, of(300, folder.name(), 600));
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) (void)test::take_epoch(*cache, source, epoch);
    ASSERT_EQ(cache->counters().size(), 2u);
    const Counters row = cache->counters()[1];
    for (const Tally& tally : {row.memory, row.disk, row.peers, row.origin}) {
      EXPECT_GT(tally.records, 0u);
      EXPECT_GT(tally.seconds, 0.0);
      records += tally.records;
      bytes += tally.bytes;
    }
  });
  EXPECT_EQ(records, 90u);
  EXPECT_EQ(bytes, source.total());
}

TEST(Tiers, ARunThatResumesInMidEpochReadsEachRecordOnceToo) {
  test::MemorySource source(50, 20);
  syncopate::test::on_groups(2, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, of(source.total()));
    for (input::Progress at{.epoch = 4, .sample = 30}; at.epoch < 7;) {
      for (const input::Record& record : cache->read({at, 8})) EXPECT_EQ(record.bytes, source.content(record.sample));
      input::advance(at, std::min<std::size_t>(8, 50 - at.sample), 50);
    }
  });
  EXPECT_TRUE(source.each_was_read_once());
}

TEST(Tiers, AnErrorOfTheOriginIsItsTakersAloneAndLaterStepsGoOn) {
  test::MemorySource source(40, 30, 1, true);
  source.refuses = [](std::size_t record) { return record == 17; };
  std::atomic<int> refused = 0, others = 0;
  // Rank 1 holds all: rank 0's records come through it, and one of them rank 1 cannot read.
  syncopate::test::on_groups(2, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, of(group.rank() == 1 ? source.total() : 0));
    for (input::Progress at{}; at.epoch < 4;) {
      try {
        for (const input::Record& record : cache->read({at, 10}))
          EXPECT_EQ(record.bytes, source.content(record.sample));
        ++others;
      } catch (const SystemFailure& error) {
        EXPECT_STREQ(error.what(), "record 17 cannot be read");
        ++refused;
      }
      input::advance(at, 10, 40);
    }
  });
  EXPECT_EQ(refused, 4) << "once in each epoch";
  EXPECT_EQ(others, 28);
}

TEST(Memory, IsFilledToItsLastByteAndCopiesGiveWay) {
  Memory memory(10);
  const std::vector<std::byte> bytes(10);
  const auto keep = [&](std::uint32_t sample, std::size_t length, bool is_copy) {
    memory.keep(sample, std::span(bytes).first(length), is_copy);
    std::vector<std::byte> into(length);
    return memory.read(sample, into);
  };
  std::vector<std::byte> copy(6);
  EXPECT_TRUE(keep(0, 6, true));
  EXPECT_TRUE(keep(1, 4, false));
  EXPECT_TRUE(memory.read(0, copy)) << "both fit exactly";
  EXPECT_TRUE(keep(2, 1, false));
  EXPECT_FALSE(memory.read(0, copy)) << "the copy gave way";
  EXPECT_FALSE(keep(3, 6, true)) << "5 bytes are free";
  EXPECT_TRUE(keep(4, 5, true));
  EXPECT_TRUE(keep(5, 5, false));
  EXPECT_FALSE(keep(6, 1, false)) << "only records without a copy are left";
}

TEST(Partition, FillsDiskAndMemoryToTheirLastByte) {
  const std::uint64_t cost = disk::cost_of(50);
  for (const Room& room : {Room{.memory = 50}, Room{.disk = cost}}) {
    Partition partition(2, {room});
    EXPECT_EQ(partition.holder_of(0, 50, 0), 0);
    EXPECT_EQ(partition.holder_of(1, 50, 0), kNobody);
  }
  Partition smaller(1, {Room{.disk = cost - 1, .memory = 49}});
  EXPECT_FALSE(smaller.found(0, 50, 0));
  EXPECT_EQ(smaller.holder_of(0, 50, 0), kNobody);
  EXPECT_TRUE(Partition(1, {Room{.disk = cost}}).found(0, 50, 0));
}

TEST(Tiers, AStepBeginsWithinTheSetAndHasASample) {
  const test::MemorySource source(40, 30, 1, true);
  syncopate::test::on_groups(1, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, of(0));
    EXPECT_EQ(cache->read({{.sample = 39}, 1}).size(), 1U);
    EXPECT_THROW((void)cache->read({{.sample = 40}, 1}), Misuse);
    EXPECT_THROW((void)cache->read({{.sample = 0}, 0}), Misuse);
  });
}

TEST(Tiers, RanksThatReadDifferentStepsAreAMismatch) {
  const test::MemorySource source(40, 30, 1, true);
  // Rank 1 holds all records, which are of equal length: in every step as many bytes go to rank 0.
  const auto outcomes = syncopate::test::outcomes_over("tcp", 2, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, of(group.rank() == 1 ? source.total() : 0));
    (void)cache->read({{.sample = group.rank() == 0 ? 0u : 10u}, 10});
  });
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome);
    EXPECT_THROW(std::rethrow_exception(outcome), Mismatch);
  }
}

TEST(Tiers, AnAbortEndsAReadThatWaitsAndLeavesTheGroup) {
  const test::MemorySource source(40, 30, 1, true);
  syncopate::test::on_groups(2, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, of(group.rank() == 1 ? source.total() : 0));
    barrier(group);  // both have formed it
    if (group.rank() == 1) {
      cache->abort("the training ends");
    } else {
      syncopate::test::expect_thrown<RemoteFailure>(
          [&] {
            return cache->read({{.sample = 0}, 10});
          },
          {"the training ends"});
    }
    barrier(group);
  });
}

TEST(Tiers, RanksWithDifferentSetsAreAMismatchThatNamesTheRank) {
  const test::MemorySource ours(40, 30), theirs(40, 30, 2), fewer(39, 30);
  for (const auto* other : {&theirs, &fewer}) {
    auto groups = Group::threads(3);
    int named = 0;
    for (const auto& outcome : syncopate::test::outcomes(3, [&](int rank) {
           (void)Cache::form(*groups[static_cast<std::size_t>(rank)], rank == 2 ? *other : ours, 3, of(100));
         }))
      try {
        ASSERT_TRUE(outcome);
        std::rethrow_exception(outcome);
      } catch (const Mismatch& error) {
        EXPECT_EQ(error.where().peer, 2);
        ++named;
      } catch (const RemoteFailure&) {  // another rank has thrown before this one had all it waited for
      }
    EXPECT_GE(named, 1);
  }
}

}  // namespace
}  // namespace syncopate::cache
