// Laws of every codec that sends selected elements, for any elements and any bytes of other ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compress/coders.hpp"
#include "compress/distributions.hpp"
#include "sanitized.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress {
namespace {

using test::Coders;
using test::kDistributions;
using test::vectors_of;
using test::with_residual;

/// All codecs whose packets list their elements (FeedbackUse::maskable), with default and with denser parameters.
std::vector<std::string> sparse_codecs() {
  std::vector<std::string> names;
  for (const Codec* codec : codecs()) {
    if (codec->feedback != FeedbackUse::maskable) continue;
    names.emplace_back(codec->name);
    if (codec->has_density) names.push_back(std::string(codec->name) + ":0.7");
    if (codec->has_density) names.push_back(std::string(codec->name) + ":1");
  }
  return names;
}

std::vector<std::string> codecs_with_density() {
  std::vector<std::string> names = sparse_codecs();
  std::erase_if(names, [](const std::string& name) { return !settings_of(name).codec->has_density; });
  return names;
}

std::string title(const testing::TestParamInfo<std::string>& of) {
  std::string name = of.param;
  std::ranges::replace_if(
      name, [](char c) { return c == ':' || c == '.'; }, '_');
  return name;
}

class EverySparseCodec : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, EverySparseCodec, testing::ValuesIn(sparse_codecs()), title);
class EveryCodecWithADensity : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, EveryCodecWithADensity, testing::ValuesIn(codecs_with_density()), title);

void fill(Coders& coders, const std::string& distribution, std::uint64_t step) {
  for (std::size_t rank = 0; rank < coders.size(); ++rank)
    for (std::size_t tensor = 0; tensor < 3; ++tensor) {
      auto& values = coders.at(rank, tensor).values;
      const base::CounterRandom random{step, rank, tensor};
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = kDistributions.at(distribution)(random, i);
    }
}

const std::vector<std::size_t> kElements{5003, 1, 70};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// test::Coders checks that no payload exceeds wire_bytes.
TEST_P(EverySparseCodec, GivesAllRanksTheSameBitsWithinItsSizeLaw) {
  for (const auto& [distribution, draw] : kDistributions) {
    Coders coders(with_residual(GetParam()), vectors_of(kElements), 3);
    for (std::uint64_t step = 0; step < 4; ++step) {
      fill(coders, distribution, step);
      coders.step();
      for (std::size_t rank = 1; rank < 3; ++rank)
        for (std::size_t tensor = 0; tensor < kElements.size(); ++tensor)
          ASSERT_TRUE(same_bits(coders.at(rank, tensor).values, coders.at(0, tensor).values))
              << distribution << ", step " << step << ", tensor " << tensor;
    }
  }
}

// With one rank, the average is what was sent: r' = fl(fl(g + r) - sent), and nothing else is lost.
TEST_P(EverySparseCodec, KeepsWhatItDidNotSendBitForBit) {
  for (const auto& [distribution, draw] : kDistributions) {
    if (distribution == "nan_and_infinity") continue;
    Coders coders(with_residual(GetParam()), vectors_of(kElements), 1);
    for (std::uint64_t step = 0; step < 4; ++step) {
      fill(coders, distribution, step);
      std::vector<std::vector<float>> formed;
      for (std::size_t tensor = 0; tensor < kElements.size(); ++tensor) {
        formed.push_back(coders.at(0, tensor).values);
        for (std::size_t i = 0; step > 0 && i < kElements[tensor]; ++i)
          formed[tensor][i] += coders.residual(0, tensor, i);
      }
      coders.step();
      for (std::size_t tensor = 0; tensor < kElements.size(); ++tensor)
        for (std::size_t i = 0; i < kElements[tensor]; ++i)
          ASSERT_EQ(coders.residual(0, tensor, i), formed[tensor][i] - coders.at(0, tensor).values[i])
              << distribution << ", step " << step << ", tensor " << tensor << "[" << i << "]";
    }
  }
}

TEST_P(EverySparseCodec, LetsNoRankOverlookWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const int sick : {0, 1, 2})
      for (const std::size_t place : {0, 2500, 5002}) {
        Coders coders(with_residual(GetParam()), vectors_of(kElements), 3);
        fill(coders, "normal", 1);
        coders.at(sick).values[place] = bad;
        coders.step();
        for (std::size_t rank = 0; rank < 3; ++rank)
          ASSERT_FALSE(std::ranges::all_of(coders.at(rank).values, [](float x) { return std::isfinite(x); }))
              << bad << " at " << place << " of rank " << sick << " is not seen by rank " << rank;
      }
}

TEST_P(EveryCodecWithADensity, ExpectsAboutTheBytesThatItsRoundsTake) {
  const Settings settings = settings_of(GetParam());
  Coders coders(with_residual(GetParam()), vectors_of({200000}), 2);
  const base::CounterRandom random{4};
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t i = 0; i < 200000; ++i)
      coders.at(rank).values[i] = kDistributions.at("normal")(random, rank * 200000 + i);
  coders.step();
  Tensor tensor{.values = Buffer(nullptr, 200000, DType::f32), .rows = 200000};
  const auto expected = rounds_of(settings, {&tensor, 1});
  ASSERT_EQ(expected.size(), coders.rounds());
  // DGC may send a fifth less than its density.
  const double least = settings.codec->name == "dgc" ? 0.78 : 0.95;
  for (std::size_t round = 0; round < expected.size(); ++round) {
    const auto bytes = static_cast<double>(coders.payloads(round)[0].size());
    EXPECT_GE(bytes, least * expected[round].bytes);
    EXPECT_LE(bytes, 1.05 * expected[round].bytes);
  }
}

// If a rank sends arbitrary bytes as its packet, the others throw Corrupt or decode values; nothing else happens.
TEST_P(EverySparseCodec, BearsDamagedPackets) {
  const base::CounterRandom random{6};
  std::uint64_t draw = 0;
  for (int trial = 0; trial < (syncopate::test::kSanitized ? 50 : 200); ++trial) {
    Coders coders(with_residual(GetParam()), vectors_of(kElements), 2);
    fill(coders, "ascending", 1);
    coders.damage = [&](std::size_t rank, test::Payload& payload) {
      if (rank == 1) return;
      const std::uint32_t kind = random.below(4, draw++);
      if (kind == 0) payload.resize(payload.size() / 2);
      if (kind == 1) payload.resize(payload.size() + 1 + random.below(9, draw++), std::byte{7});
      if (payload.empty()) payload.assign(1 + random.below(40, draw++), std::byte{1});
      for (std::uint32_t flips = random.below(4, draw++); flips > 0; --flips, draw += 2)
        payload[random.below(static_cast<std::uint32_t>(std::min<std::size_t>(payload.size(), 30)), draw)] ^=
            std::byte(1 + random.below(255, draw + 1));
    };
    try {
      coders.step();
    } catch (const Corrupt&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace syncopate::compress
