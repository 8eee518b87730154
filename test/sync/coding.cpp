// The coding thread: the next bucket is encoded and the last one decoded while one travels, with the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/random.hpp"
#include "compress/codec.hpp"
#include "ranks.hpp"
#include "sync/exchange.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/error.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

const std::vector<Gradient> kLayers{{.name = "one", .elements = 6000, .rows = 60},
                                    {.name = "two", .elements = 9000, .rows = 90},
                                    {.name = "three", .elements = 5000, .rows = 50}};

/// Weights of 1, which outlive synchronizers that read them.
std::vector<Buffer> ones() {
  static std::vector<float> memory(9000, 1.0F);
  std::vector<Buffer> weights;
  for (const Gradient& layer : kLayers) weights.push_back(Buffer(std::span(memory).first(layer.elements)));
  return weights;
}

void backward(Synchronizer& synchronizer, int rank, int step) {
  for (std::size_t layer = kLayers.size(); layer-- > 0;) {
    const base::CounterRandom random{static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step), layer};
    const auto values = test::floats_of(synchronizer.gradient(layer));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.uniform(i) - 0.5);
    synchronizer.ready(layer);
  }
}

std::vector<std::vector<float>> trained(Group& group, SynchronizerOptions options, bool ahead) {
  options.code_ahead = ahead;
  Synchronizer synchronizer(group, kLayers, options);
  for (int step = 0; step < 4; ++step) {
    backward(synchronizer, group.rank(), step);
    synchronizer.wait();
  }
  std::vector<std::vector<float>> values;
  for (std::size_t layer = 0; layer < kLayers.size(); ++layer) {
    const auto floats = test::floats_of(synchronizer.gradient(layer));
    values.emplace_back(floats.begin(), floats.end());
  }
  return values;
}

TEST(CodingThread, GivesTheBitsOfOneThread) {
  for (const compress::Codec* codec : compress::codecs())
    for (const char* policy : {"wfbp", "fusion"})
      test::on_groups(3, [&](Group& group) {
        const SynchronizerOptions options{
            .policy = policy, .coding = {.codec = std::string(codec->name)}, .weights = ones()};
        EXPECT_EQ(trained(group, options, true), trained(group, options, false)) << codec->name << " " << policy;
      });
}

std::size_t count(const Trace& trace, const char* track) {
  return static_cast<std::size_t>(
      std::ranges::count_if(trace.spans(), [&](const Span& span) { return span.track == track; }));
}

// Rank 1 takes no part in the first exchange before rank 0 has encoded all that follows.
TEST(CodingThread, EncodesWhatFollowsBeforeTheFirstHasArrived) {
  Trace trace;
  trace.restart();
  test::on_groups(2, [&](Group& group) {
    SynchronizerOptions options{.policy = "wfbp", .coding = {.codec = "topk:0.1"}};
    if (group.rank() == 0) options.trace = &trace;
    Synchronizer synchronizer(group, kLayers, options);
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (group.rank() == 1 && count(trace, "encode") < kLayers.size()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << count(trace, "encode") << " buckets were encoded";
      std::this_thread::yield();
    }
    backward(synchronizer, group.rank(), 0);
    synchronizer.wait();
  });
  EXPECT_EQ(count(trace, "exchange"), kLayers.size());
  EXPECT_EQ(count(trace, "decode"), kLayers.size());
}

// Rank 1 answers by hand, with a packet that is none.
TEST(CodingThread, TellsOfAPacketThatItCannotDecode) {
  test::on_groups(2, [](Group& group) {
    Synchronizer synchronizer(group, {{.name = "layer", .elements = 6000, .rows = 60}},
                              {.coding = {.codec = "topk:0.1"}});
    if (group.rank() == 0) {
      std::ranges::fill(test::floats_of(synchronizer.gradient(0)), 1.0F);
      synchronizer.ready(0);
      EXPECT_THROW(synchronizer.wait(), Corrupt);
      EXPECT_THROW(synchronizer.wait(), Corrupt) << "it stays so";
      return;
    }
    constexpr std::size_t kBytes = 40;
    std::vector<std::int64_t> words{0, 0, 0, kBytes, 24'000, 2};
    sync::run(group, Collective::allgather, Buffer(std::span(words)), {.name = "layer"});
    std::vector<std::byte> packets(static_cast<std::size_t>(words[0]) + kBytes, std::byte{0xFF});
    const auto go_on = [&] {
      allgather_v(group, Buffer(packets.data(), packets.size(), DType::u8),
                  std::vector{packets.size() - kBytes, kBytes}, {.name = "layer"});
      barrier(group);
    };
    EXPECT_THROW(go_on(), RemoteFailure) << "rank 0 reports why it ends";
  });
}

}  // namespace
}  // namespace syncopate
