// The engine: what it posts, and when, on a link whose frames end in the order that the test chooses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "collective/engine/execute.hpp"

namespace syncopate::collective::engine {
namespace {

constexpr std::size_t kFrame = 64;

/// Links that keep what is posted until the test ends it.
class Posts final : public transport::Transport {
 public:
  [[nodiscard]] transport::FrameLengths frame_lengths(int /*peer*/) const noexcept override { return {kFrame, kFrame}; }
  void send(const transport::Frame& frame) override { open.push_back({frame.token, false, frame.bytes}); }
  void receive(int /*peer*/, const transport::Label& /*label*/, base::Bytes into, std::uint64_t token) override {
    open.push_back({token, true, into});
  }
  void release(std::uint64_t token) override { released.push_back(token); }
  std::span<const transport::Event> poll(base::Time /*deadline*/, transport::Patience /*patience*/) override {
    return {};
  }
  void wake() noexcept override {}
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override { return {0, 0}; }

  /// Ends the post at `place` of those that are open.
  void end(Execution& execution, std::size_t place) {
    const transport::Event event = open.at(place);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(place));
    execution.take({&event, 1});
  }

  std::vector<transport::Event> open;
  std::vector<std::uint64_t> released;
};

plan::Program one_step(Act act) {
  return plan::compile({.chunks = 1, .steps = {{.act = act, .peer = 1, .first_chunk = 0, .chunk_count = 1}}});
}

class EveryAct : public testing::TestWithParam<Act> {};

TEST_P(EveryAct, EndsThoughItsFirstSegmentIsTheLast) {
  constexpr std::size_t kSegments = 200;
  std::vector<std::uint8_t> vector(kSegments * kFrame);
  Posts posts;
  Scratch scratch;
  const plan::Program program = one_step(GetParam());
  Execution execution(program, {.data = Buffer(vector.data(), vector.size(), DType::u8), .reduction = {DType::u8}},
                      posts, scratch);
  execution.advance();
  std::size_t ended = 0;
  for (; posts.open.size() > 1; ++ended) posts.end(execution, 1);
  EXPECT_FALSE(execution.done());
  EXPECT_LT(ended, 64U) << "posts so far ahead of an unfinished segment would be ambiguous";
  for (; !posts.open.empty(); ++ended) posts.end(execution, 0);
  EXPECT_TRUE(execution.done());
  EXPECT_EQ(ended, kSegments);
}

INSTANTIATE_TEST_SUITE_P(Engine, EveryAct, testing::Values(Act::send, Act::receive, Act::receive_reduce),
                         [](const auto& act) {
                           return act.param == Act::send      ? "Sends"
                                  : act.param == Act::receive ? "Receives"
                                                              : "Reductions";
                         });

TEST(Engine, KeepsAtMost32SegmentsOfAPeerUnderWay) {
  std::vector<std::uint8_t> vector(100 * kFrame);
  Posts posts;
  Scratch scratch;
  const plan::Program program = one_step(Act::send);
  Execution execution(program, {.data = Buffer(vector.data(), vector.size(), DType::u8), .reduction = {DType::u8}},
                      posts, scratch);
  execution.advance();
  EXPECT_EQ(posts.open.size(), 32U);
  posts.end(execution, 0);
  EXPECT_EQ(posts.open.size(), 32U);
}

TEST(Engine, GivesEveryArrivalBackOnce) {
  constexpr std::size_t kSegments = 5;
  for (const Act act : {Act::receive, Act::receive_reduce}) {
    std::vector<std::uint8_t> vector(kSegments * kFrame);
    Posts posts;
    Scratch scratch;
    const plan::Program program = one_step(act);
    Execution execution(program, {.data = Buffer(vector.data(), vector.size(), DType::u8), .reduction = {DType::u8}},
                        posts, scratch);
    execution.advance();
    while (!posts.open.empty()) posts.end(execution, posts.open.size() - 1);
    std::ranges::sort(posts.released);
    EXPECT_EQ(posts.released.size(), kSegments);
    EXPECT_EQ(std::ranges::adjacent_find(posts.released), posts.released.end());
  }
}

}  // namespace
}  // namespace syncopate::collective::engine
