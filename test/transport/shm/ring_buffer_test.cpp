// Ring buffers: records cross whole, and every value that the other end writes is checked.
#include "transport/shm/ring_buffer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <random>

#include "syncopate/error.hpp"

namespace syncopate::transport::shm {
namespace {

constexpr FrameHead head_of(std::size_t bytes) { return {{7, 99}, bytes}; }

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 31 + seed * 7 + (i >> 8));
  return data;
}

/// Both ends of one region, mapped twice as two processes would.
struct Ends {
  Region maker = Region::make();
  Region guest = Region::adopt(socket::Descriptor(::dup(maker.memory().number())));
  RingWriter writer{maker.ring(Side::maker), maker.tail(Side::maker)};
  RingReader reader{guest.ring(Side::maker), guest.tail(Side::maker)};
};

void store(std::byte* at, std::uint64_t value) { std::memcpy(at, &value, sizeof value); }

TEST(RingBuffer, RecordsOfEverySizeCrossWholeAndWrapAround) {
  Ends ends;
  std::mt19937 random(3);
  struct Expected {
    std::size_t bytes;
    unsigned seed;
  };
  std::deque<Expected> under_way;
  std::size_t moved = 0;
  for (unsigned seed = 0; moved < 12 * kRingBytes; ++seed) {
    const std::size_t most = seed % 3 == 0 ? 80 : kMostPiece;
    const std::size_t bytes = seed % 17 == 0 ? most : std::uniform_int_distribution<std::size_t>(0, most)(random);
    const auto piece = pattern(bytes, seed);
    while (!ends.writer.push(head_of(bytes), piece)) {
      ASSERT_FALSE(under_way.empty());
      const auto record = ends.reader.look();
      ASSERT_TRUE(record);
      EXPECT_EQ(record->frame.label, (Label{7, 99}));
      const auto expected = pattern(under_way.front().bytes, under_way.front().seed);
      ASSERT_EQ(record->piece.size(), expected.size());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), record->piece.begin()));
      ends.reader.pass(*record);
      ends.reader.give_back(record->end);
      under_way.pop_front();
    }
    under_way.push_back({bytes, seed});
    moved += bytes;
  }
}

TEST(RingBuffer, AnEmptyOneHasNoRecordAndAFullOneTakesNone) {
  Ends ends;
  EXPECT_FALSE(ends.reader.look());
  const std::vector<std::byte> piece(kMostPiece);
  int taken = 0;
  while (ends.writer.push(head_of(piece.size()), piece)) ++taken;
  EXPECT_EQ(taken, 3) << "the fourth quarter has no room for its fields";
  const auto first = ends.reader.look();
  ASSERT_TRUE(first);
  ends.reader.pass(*first);
  EXPECT_FALSE(ends.writer.push(head_of(piece.size()), piece)) << "read, but not given back";
  ends.reader.give_back(first->end);
  EXPECT_TRUE(ends.writer.push(head_of(piece.size()), piece));
}

TEST(RingBuffer, ASmallFrameIsOneLine) {
  Ends ends;
  ASSERT_TRUE(ends.writer.push(head_of(kInlineBytes), pattern(kInlineBytes, 1)));
  const auto record = ends.reader.look();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->end, kLineBytes);
  EXPECT_LT(record->piece.data(), ends.guest.ring(Side::maker) + kLineBytes);
}

// A payload may hold any bytes, even those of the mark of a later record.
TEST(RingBuffer, PayloadOfAnEarlierRoundIsNoRecord) {
  Ends ends;
  std::vector<std::byte> tricky(kMostPiece);
  for (std::uint64_t round = 0; round < 40; ++round) {
    for (std::size_t at = 0; at < tricky.size(); at += 8)
      store(tricky.data() + at, (round + 1) * kRingBytes + at / kLineBytes * kLineBytes + 1);
    const auto piece = base::ConstBytes(tricky).first(kMostPiece - 64 * (round % 5));
    ASSERT_TRUE(ends.writer.push(head_of(piece.size()), piece));
    const auto record = ends.reader.look();
    ASSERT_TRUE(record);
    ends.reader.pass(*record);
    ends.reader.give_back(record->end);
    EXPECT_FALSE(ends.reader.look());
  }
}

/// Both rings of a region: an arrival in one can be replied to in place by the other.
struct BothWays {
  Region maker = Region::make();
  RingWriter to_guest{maker.ring(Side::maker), maker.tail(Side::maker)};
  RingReader at_guest{maker.ring(Side::maker), maker.tail(Side::maker)};
  RingWriter to_maker{maker.ring(Side::guest), maker.tail(Side::guest)};
  RingReader at_maker{maker.ring(Side::guest), maker.tail(Side::guest)};
};

TEST(RingBuffer, AReplyLiesWhereTheFrameCameFrom) {
  BothWays ways;
  ASSERT_TRUE(ways.to_guest.push(head_of(3000), pattern(3000, 1)));
  const auto frame = ways.at_guest.look();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, Kind::piece);
  const auto answer = pattern(3000, 2);
  std::ranges::copy(answer, frame->piece.begin());
  ASSERT_TRUE(ways.to_maker.push(head_of(3000), Kind::reply, frame->at));
  const auto record = ways.at_maker.look();
  ASSERT_TRUE(record && record->kind == Kind::reply);
  EXPECT_EQ(record->frame.bytes, 3000U);
  EXPECT_TRUE(std::ranges::equal(ways.to_guest.replied(record->place, record->frame.bytes), answer));
}

TEST(HostileReply, OutsideOfWhatIsUnderWayIsRefused) {
  BothWays ways;
  ASSERT_TRUE(ways.to_guest.push(head_of(3000), pattern(3000, 1)));
  const auto frame = ways.at_guest.look();
  ASSERT_TRUE(frame);
  using Reply = std::pair<std::uint64_t, std::uint64_t>;
  for (const auto& [position, bytes] : {Reply{frame->at, 3200}, Reply{frame->end, 1}, Reply{~0ULL, 1}, Reply{0, ~0ULL},
                                        Reply{frame->at, kMostPiece + 1}, Reply{~0ULL - 10, 20}})
    EXPECT_THROW(std::ignore = ways.to_guest.replied(position, bytes), Corrupt) << position << " " << bytes;
  ways.at_guest.pass(*frame);
  ways.at_guest.give_back(frame->end);
  const std::vector<std::byte> piece(kMostPiece);
  while (ways.to_guest.push(head_of(piece.size()), piece)) {  // learns of freed bytes
  }
  EXPECT_THROW(std::ignore = ways.to_guest.replied(frame->at, 3000), Corrupt);
}

class HostileRecord : public testing::Test {
 protected:
  /// The reader's reaction to a good record in which 8 bytes were overwritten.
  void expect_refused(std::size_t at, std::uint64_t value) {
    Ends ends;
    ASSERT_TRUE(ends.writer.push(head_of(200), pattern(200, 1)));
    ASSERT_TRUE(ends.reader.look());
    store(ends.maker.ring(Side::maker) + at, value);
    EXPECT_THROW(std::ignore = ends.reader.look(), Corrupt) << "offset " << at << " value " << value;
  }
};

TEST_F(HostileRecord, WithAWrongMarkIsRefused) {
  expect_refused(0, 2);
  expect_refused(0, ~std::uint64_t{0});
}
TEST_F(HostileRecord, LongerThanItsFrameOrThanAllowedIsRefused) {
  expect_refused(24, 199);
  expect_refused(32, kMostPiece + 1);
  expect_refused(32, 0xffffffff);
  for (std::uint64_t kind = 1; kind < kKinds; ++kind) expect_refused(32, kind << 32 | 200);  // these have 16 bytes
  expect_refused(32, std::uint64_t{kKinds} << 32 | 16);
}

TEST_F(HostileRecord, OverBytesInUseIsRefused) {
  Ends ends;
  const std::vector<std::byte> piece(kMostPiece);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ends.writer.push(head_of(piece.size()), piece));
    const auto record = ends.reader.look();
    ASSERT_TRUE(record);
    ends.reader.pass(*record);  // kept
  }
  // The writer may not put a fourth record there; a hostile one does.
  std::byte* fourth = ends.maker.ring(Side::maker) + 3 * (kMostPiece + kLineBytes);
  store(fourth + 24, kMostPiece);
  store(fourth + 32, kMostPiece);
  store(fourth, 3 * (kMostPiece + kLineBytes) + 1);
  EXPECT_THROW(std::ignore = ends.reader.look(), Corrupt);
}

TEST(HostileTail, ThatGivesBackWhatNeverWasIsRefused) {
  for (const std::uint64_t tail : {std::uint64_t{10} * kRingBytes, ~std::uint64_t{0}, std::uint64_t{65}}) {
    Ends ends;
    const std::vector<std::byte> piece(kMostPiece);
    while (ends.writer.push(head_of(piece.size()), piece)) {
    }
    *ends.guest.tail(Side::maker) = tail;
    EXPECT_THROW(std::ignore = ends.writer.push(head_of(piece.size()), piece), Corrupt) << tail;
  }
}

TEST(HostileTail, ThatGoesBackIsRefused) {
  Ends ends;
  const std::vector<std::byte> piece(kMostPiece);
  for (int round = 0; round < 2; ++round) {
    while (ends.writer.push(head_of(piece.size()), piece)) {
    }
    const auto record = ends.reader.look();
    ASSERT_TRUE(record);
    ends.reader.pass(*record);
    ends.reader.give_back(record->end);
  }
  ASSERT_TRUE(ends.writer.push(head_of(piece.size()), piece));
  *ends.guest.tail(Side::maker) = 0;
  EXPECT_THROW(std::ignore = ends.writer.push(head_of(piece.size()), piece), Corrupt);
}

socket::Descriptor memory_of(std::size_t bytes, int seals) {
  socket::Descriptor memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(memory.number(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(memory.number(), F_ADD_SEALS, seals), 0);
  return memory;
}

TEST(Region, ThatIsNotSealedOrOfAnotherSizeIsRefused) {
  const Region good = Region::make();
  const auto bytes = static_cast<std::size_t>(::lseek(good.memory().number(), 0, SEEK_END));
  constexpr int kAll = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_NO_THROW(std::ignore = Region::adopt(memory_of(bytes, kAll)));
  EXPECT_THROW(std::ignore = Region::adopt(memory_of(bytes, 0)), Corrupt);
  EXPECT_THROW(std::ignore = Region::adopt(memory_of(bytes, F_SEAL_GROW)), Corrupt);
  EXPECT_THROW(std::ignore = Region::adopt(memory_of(bytes - 1, kAll)), Corrupt);
  EXPECT_THROW(std::ignore = Region::adopt(memory_of(2 * bytes, kAll)), Corrupt);
  EXPECT_THROW(std::ignore = Region::adopt(socket::Descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC))), Corrupt);
  EXPECT_THROW(std::ignore = Region::adopt({}), Corrupt);
}

TEST(Region, CannotBeResizedByEitherEnd) {
  const Region region = Region::make();
  EXPECT_NE(::ftruncate(region.memory().number(), 0), 0);
  EXPECT_NE(::ftruncate(region.memory().number(), std::int64_t{1} << 30), 0);
}

TEST(Region, GoesOnAtItsBeginning) {
  const Region region = Region::make();
  for (const Side writer : {Side::maker, Side::guest}) {
    std::byte* ring = region.ring(writer);
    ring[kRingBytes] = std::byte{5};
    ring[kRingBytes - 1] = std::byte{6};
    EXPECT_EQ(ring[0], std::byte{5});
    EXPECT_EQ(ring[2 * kRingBytes - 1], std::byte{6});
    ring[0] = ring[kRingBytes - 1] = std::byte{0};
  }
}

}  // namespace
}  // namespace syncopate::transport::shm
