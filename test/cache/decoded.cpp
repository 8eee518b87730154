// Decoded: the holder of a record keeps its decoded form within a limit, and every rank gets that form from then on.
#include "cache/decoded.hpp"

#include <thread>

#include "cache/memory.hpp"
#include "cache/sample.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::cache {
namespace {

using test::MemorySource;

/// Two bytes longer than the record, and another for every record.
std::vector<std::byte> form_of(const MemorySource& source, std::uint32_t sample) {
  std::vector<std::byte> form = source.content(sample);
  std::ranges::reverse(form);
  form.resize(form.size() + 2, std::byte{0x5a});
  return form;
}

/// Decodes the wanted records of one epoch and gives them to the cache. Compares every record.
Counters take_epoch(Cache& cache, const MemorySource& source, std::uint64_t epoch, std::atomic<std::size_t>& made) {
  for (input::Progress at{.epoch = epoch}; at.epoch == epoch;) {
    for (const input::Record& record : cache.read({at, 7})) {
      const bool is_form = record.form == input::Form::decoded;
      EXPECT_EQ(record.bytes, is_form ? form_of(source, record.sample) : source.content(record.sample))
          << "epoch " << epoch << ", record " << record.sample;
      if (record.form != input::Form::wanted) continue;
      ++made;
      cache.keep(record.sample, form_of(source, record.sample));
    }
    input::advance(at, std::min<std::size_t>(7, source.records() - at.sample), source.records());
  }
  return cache.counters().back();
}

Options options_of(std::uint64_t memory, std::uint64_t decoded) {
  Options options = test::of(memory);
  options.decoded_bytes = decoded;
  return options;
}

TEST(Decoded, FormsAreMadeOnceAndReachEveryRankOverEveryTransport) {
  for (const int ranks : {1, 2, 4}) {
    MemorySource source(101, 60);
    std::atomic<std::size_t> made = 0, decoded = 0;
    syncopate::test::on_every_transport(ranks, [&](Group& group) {
      if (group.rank() == 0) made = decoded = 0, static_cast<void>(source.reads());
      barrier(group);
      const auto cache = Cache::form(group, source, 3, options_of(source.total(), 2 * source.total() + 202));
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        const Counters row = take_epoch(*cache, source, epoch, made);
        if (epoch == 2) decoded += row.decoded;
        EXPECT_EQ(row.decoded, epoch == 0 ? 0 : row.memory.records + row.peers.records) << "epoch " << epoch;
      }
      barrier(group);
      EXPECT_EQ(made, 101U) << ranks << " ranks";
      EXPECT_EQ(decoded, 101U);
      EXPECT_TRUE(group.rank() > 0 || source.each_was_read_once());
      barrier(group);
    });
  }
}

TEST(Decoded, WhatHasNoRoomStaysEncoded) {
  const MemorySource source(80, 50, 1, true);  // forms of 52 bytes
  std::atomic<std::size_t> made = 0, decoded = 0, origin = 0;
  syncopate::test::on_groups(2, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, options_of(80 * 50, group.rank() == 0 ? 10 * 52 + 51 : 0));
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const Counters row = take_epoch(*cache, source, epoch, made);
      if (epoch != 2) continue;
      decoded += row.decoded;
      origin += row.origin.records;
    }
  });
  EXPECT_EQ(decoded, 10U) << "rank 1 has no room for forms, but receives some";
  EXPECT_EQ(origin, 0U);
  EXPECT_LE(made, 10U + 4U) << "a step of rank 0 has 4 records: after the first without room none is wanted";
}

TEST(Decoded, OnlyAHolderWantsAForm) {
  const MemorySource source(40, 30, 1, true);
  syncopate::test::on_groups(2, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, options_of(group.rank() == 1 ? source.total() : 0, 1 << 20));
    for (const input::Record& record : cache->read({{}, 40}))
      EXPECT_EQ(record.form, group.rank() == 1 ? input::Form::wanted : input::Form::encoded);
  });
}

TEST(Decoded, FormsAreKeptByOtherThreadsWhileStepsAreRead) {
  const MemorySource source(200, 50);
  syncopate::test::on_groups(2, [&](Group& group) {
    const auto cache = Cache::form(group, source, 3, options_of(source.total(), source.total()));
    std::vector<std::jthread> decoding;
    for (input::Progress at{}; at.epoch < 3; input::advance(at, 20, 200)) {
      std::vector<std::uint32_t> wanted;
      for (const input::Record& record : cache->read({at, 20})) {
        EXPECT_EQ(record.bytes,
                  record.form == input::Form::decoded ? form_of(source, record.sample) : source.content(record.sample));
        if (record.form == input::Form::wanted) wanted.push_back(record.sample);
      }
      decoding.emplace_back([&, wanted] {
        for (const std::uint32_t sample : wanted) cache->keep(sample, form_of(source, sample));
      });
    }
  });
}

TEST(Decoded, IsFilledToItsLastByteAndChangesNoForm) {
  Decoded decoded(10);
  EXPECT_TRUE(decoded.has_room());
  decoded.keep(0, std::vector<std::byte>(6, std::byte{1}));
  decoded.keep(0, std::vector<std::byte>(1, std::byte{2}));
  decoded.keep(1, {});
  decoded.keep(2, std::vector<std::byte>(4, std::byte{3}));
  EXPECT_EQ(decoded.find(0).size(), 6U);
  EXPECT_EQ(decoded.find(0)[0], std::byte{1});
  EXPECT_TRUE(decoded.find(1).empty());
  EXPECT_EQ(decoded.find(2).size(), 4U) << "both fit exactly";
  EXPECT_EQ(decoded.fresh(), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_TRUE(decoded.fresh().empty());
  EXPECT_TRUE(decoded.has_room());
  decoded.keep(3, std::vector<std::byte>(1));
  EXPECT_TRUE(decoded.find(3).empty());
  EXPECT_FALSE(decoded.has_room());
  EXPECT_FALSE(Decoded(0).has_room());
}

TEST(Memory, ForgottenRecordsMakeRoomAlsoAmongCopies) {
  Memory memory(10);
  const std::vector<std::byte> bytes(10);
  std::vector<std::byte> into(5);
  memory.keep(0, std::span(bytes).first(5), true);
  memory.keep(1, std::span(bytes).first(5), true);
  memory.forget(1);
  memory.forget(7);
  EXPECT_FALSE(memory.read(1, into));
  memory.keep(2, std::span(bytes).first(5), false);
  EXPECT_TRUE(memory.read(0, into)) << "the forgotten one made room";
  memory.keep(3, std::span(bytes).first(5), false);
  EXPECT_TRUE(memory.read(3, into));
  EXPECT_FALSE(memory.read(0, into)) << "the copy gave way";
}

}  // namespace
}  // namespace syncopate::cache
