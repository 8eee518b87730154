// Beat: a heartbeat in every eighth of the silence, and time in which a process was stopped hardly counts.
#include "base/beat.hpp"

#include <gtest/gtest.h>

namespace syncopate::base {
namespace {

using namespace std::chrono_literals;

constexpr Time kBegin{5s};

TEST(Beat, ComesEightTimesPerSilence) {
  Beat beat(2s, kBegin);
  EXPECT_EQ(beat.interval(), 250ms);
  int beats = 0;
  for (Time now = kBegin; now < kBegin + 2s; now += 10ms) beats += beat.is_due(now) ? 1 : 0;
  EXPECT_EQ(beats, 8);
}

TEST(Beat, IsNotRepeatedForTheTimeThatItWasLate) {
  Beat beat(800ms, kBegin);
  EXPECT_TRUE(beat.is_due(kBegin + 10s));
  EXPECT_FALSE(beat.is_due(kBegin + 10s + 99ms));
  EXPECT_EQ(beat.next(), kBegin + 10s + 100ms);
}

TEST(Beat, CountsTheTimeThatItsProcessRan) {
  Beat beat(800ms, kBegin);
  Duration ran{0};
  for (int run = 1; run <= 10; ++run) ran += beat.run(kBegin + run * 80ms);
  EXPECT_EQ(ran, 800ms);
  EXPECT_EQ(beat.since_run(kBegin + 850ms), 50ms);
  EXPECT_EQ(beat.last_run(), kBegin + 800ms);
}

TEST(Beat, CountsTwoIntervalsOfAStop) {
  Beat beat(800ms, kBegin);
  EXPECT_EQ(beat.run(kBegin + 1h), 200ms);
  EXPECT_EQ(beat.run(kBegin + 1h + 30ms), 30ms) << "what came after the stop counts as before";
}

TEST(Beat, IsAtLeast5MillisecondsAway) { EXPECT_EQ(Beat(1ms, kBegin).interval(), 5ms); }

}  // namespace
}  // namespace syncopate::base
