// Malicious packets of quantising codecs: Corrupt, or harmless.
#include <limits>

#include "base/random.hpp"
#include "compress/coders.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress {
namespace {

using test::Coders;
using Packets = std::vector<std::vector<std::byte>>;

/// Two ranks after their first round, with three groups of 2560 (the last one shorter) or twelve of 512.
Coders begun(const std::string& codec) {
  Coders coders(settings_of(codec), {{6000, 1, 0}}, 2);
  coders.fill([](auto rank, auto, auto i) { return static_cast<float>(i % 7) - 3.0F + static_cast<float>(rank); });
  coders.begin();
  return coders;
}

const char* const kCodecs[] = {"qsgd:4", "terngrad", "int8", "onebit"};

void put(std::vector<std::byte>& packet, std::size_t at, float value) { std::memcpy(packet.data() + at, &value, 4); }

TEST(QuantisedBytes, OfAnotherLengthOrNumberAreCorruptInBothRounds) {
  for (const char* codec : kCodecs)
    for (const bool in_second_round : {false, true}) {
      const auto expect_corrupt = [&](auto change) {
        Coders coders = begun(codec);
        if (in_second_round) coders.answer_all();
        Packets packets = coders.answers()[0];
        change(packets);
        EXPECT_THROW(coders.answer(0, packets), Corrupt) << codec;
      };
      expect_corrupt([](Packets& packets) { packets[1].push_back(std::byte{0}); });
      expect_corrupt([](Packets& packets) { packets[1].pop_back(); });
      expect_corrupt([](Packets& packets) { packets[1].clear(); });
      expect_corrupt([](Packets& packets) { packets.pop_back(); });
      expect_corrupt([](Packets& packets) { packets.push_back(packets[0]); });
    }
}

TEST(QuantisedBytes, WithALevelThatDoesNotExistAreCorrupt) {
  for (const char* codec : {"qsgd:2", "qsgd:4", "qsgd:8", "terngrad", "int8"})
    for (const bool in_second_round : {false, true}) {
      Coders coders = begun(codec);
      if (in_second_round) coders.answer_all();
      Packets packets = coders.answers()[0];
      std::fill(packets[1].begin() + 4, packets[1].end(), std::byte{0xff});
      EXPECT_THROW(coders.answer(0, packets), Corrupt) << codec;
    }
}

TEST(QuantisedBytes, OfFiveTritsAreAtMostTheirLargestSum) {
  for (const unsigned sum : {242U, 243U}) {  // 3^5 - 1 is five times the digit 2
    Coders coders = begun("terngrad");
    Packets packets = coders.answers()[0];
    packets[1][4] = std::byte(sum);
    const auto is_taken = [&] {
      try {
        coders.answer(0, packets);
        return true;
      } catch (const Corrupt&) {
        return false;
      }
    };
    EXPECT_EQ(is_taken(), sum == 242) << sum;
  }
}

TEST(QuantisedBytes, WithAScaleThatNobodySendsAreCorrupt) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const char* codec : {"qsgd:4", "terngrad", "int8"})
    for (const float unit : {-1.0F, -0.0F, kInfinity, -kInfinity}) {
      Coders coders = begun(codec);
      Packets packets = coders.answers()[0];
      put(packets[1], 0, unit);
      EXPECT_THROW(coders.answer(0, packets), Corrupt) << codec << ", " << unit;
    }
  using Means = std::pair<float, float>;
  for (const auto& [positive, negative] : {Means{-1.0F, -1.0F}, Means{1.0F, 1.0F}, Means{kInfinity, -1.0F},
                                           Means{1.0F, -kInfinity}, Means{kNan, -1.0F}, Means{1.0F, kNan}}) {
    Coders coders = begun("onebit");
    Packets packets = coders.answers()[0];
    put(packets[1], 0, positive);
    put(packets[1], 4, negative);
    EXPECT_THROW(coders.answer(0, packets), Corrupt) << positive << ", " << negative;
  }
}

TEST(QuantisedBytes, DamagedAreCorruptOrHarmless) {
  const base::CounterRandom random{5};
  std::uint64_t draw = 0;
  for (const char* codec : kCodecs)
    for (int trial = 0; trial < 400; ++trial) {
      Coders coders = begun(codec);
      if (trial % 2 == 1) coders.answer_all();
      Packets packets = coders.answers()[0];
      const auto size = static_cast<std::uint32_t>(packets[1].size());
      for (std::uint32_t flips = 1 + random.below(3, draw++); flips > 0 && size > 0; --flips, draw += 2)
        packets[1][random.below(size, draw)] ^= std::byte(1 + random.below(255, draw + 1));
      try {
        coders.answer(0, packets);
      } catch (const Corrupt&) {
        continue;
      }
      EXPECT_EQ(coders[0].round.has_value(), trial % 2 == 0);
    }
}

}  // namespace
}  // namespace syncopate::compress
