// The throttled origin: bytes come at its rate, after a pause with a burst; what they are does not change.
#include "cache/throttled.hpp"

#include <cmath>

#include "cache/sample.hpp"

namespace syncopate::cache {
namespace {

/// A clock that stands still but for those who wait.
struct Waiting {
  base::Time now{std::chrono::seconds(100)};
  Throttled::Timing timing() {
    return {[this] { return now; }, [this](base::Time until) { now = std::max(now, until); }};
  }
  [[nodiscard]] double seconds() const { return base::seconds(now - base::Time(std::chrono::seconds(100))); }
};

TEST(Throttled, ReadsTakeTheirBytesTimeBeyondOneBurst) {
  const test::MemorySource source(100, 500, 1, true);
  Waiting waiting;
  const Throttled slow(source, TokenBucket(1000, 2000), waiting.timing());
  std::vector<std::byte> bytes(500);
  for (std::size_t record = 0; record < 4; ++record) slow.read(record, bytes);
  EXPECT_EQ(waiting.seconds(), 0) << "the bucket was full";
  for (std::size_t record = 4; record < 44; ++record) slow.read(record, bytes);
  EXPECT_NEAR(waiting.seconds(), 20, 1e-6);
  EXPECT_EQ(bytes, source.content(43));
}

TEST(Throttled, APauseFillsTheBucketAndNoMore) {
  const test::MemorySource source(10, 1000, 1, true);
  Waiting waiting;
  const Throttled slow(source, TokenBucket(1000, 2000), waiting.timing());
  std::vector<std::byte> bytes(1000);
  waiting.now += std::chrono::seconds(1000);
  const double begin = waiting.seconds();
  for (std::size_t record = 0; record < 5; ++record) slow.read(record, bytes);
  EXPECT_NEAR(waiting.seconds() - begin, 3, 1e-6);
}

TEST(Throttled, IsTheSameSetAndARateIsPositive) {
  const test::MemorySource source(10, 1000);
  const auto slow = throttled(source, 1e12);
  EXPECT_EQ(slow->records(), 10u);
  EXPECT_EQ(slow->bytes(3), source.bytes(3));
  EXPECT_EQ(slow->name(3), "record 3");
  EXPECT_EQ(slow->version(), 1u);
  for (const double rate : {0.0, -1.0, std::nan("")}) EXPECT_THROW((void)throttled(source, rate), Misuse);
}

}  // namespace
}  // namespace syncopate::cache
