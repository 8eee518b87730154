// Message queues on links and a clock of the test: when a message times out.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <optional>
#include <vector>

#include "collective/group/message_queues.hpp"
#include "syncopate/error.hpp"

namespace syncopate::collective::group {
namespace {

using namespace std::chrono_literals;
using transport::membership::Failure;

constexpr base::Duration kTimeout = 2s;

class SetClock final : public base::Clock {
 public:
  [[nodiscard]] base::Time now() const override { return time; }
  base::Time time{};
};

/// Links whose receives end when the test lets them.
class Arrivals final : public transport::Transport {
 public:
  void send(const transport::Frame& /*frame*/) override { FAIL() << "this rank only receives"; }
  void receive(int /*peer*/, const transport::Label& /*label*/, base::Bytes into, std::uint64_t token) override {
    open_.push_back({token, true, into});
  }
  void release(std::uint64_t /*token*/) override {}
  std::span<const transport::Event> poll(base::Time /*deadline*/, transport::Patience /*patience*/) override {
    last_.clear();
    for (; arrived > 0; --arrived) {
      last_.push_back(open_.front());
      open_.pop_front();
    }
    return last_;
  }
  void wake() noexcept override {}
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override { return {0, 0}; }

  int arrived = 0;  ///< frames, since the last poll

 private:
  std::deque<transport::Event> open_;
  std::vector<transport::Event> last_;
};

class NoControl final : public transport::membership::Control {
 public:
  [[nodiscard]] std::optional<Failure> failure() const override { return std::nullopt; }
  [[nodiscard]] bool failed() const noexcept override { return false; }
  void report(Failure /*failure*/) override {}
  void began(const transport::membership::OperationRecord& /*record*/) override {}
  void mismatch(int /*peer*/, std::uint64_t /*number*/) override {}
  [[nodiscard]] std::string laggards(std::uint64_t /*number*/) const override { return {}; }
};

TEST(MessageQueues, GiveEveryMessageTheTimeoutAlsoBehindOthers) {
  const std::atomic<base::Duration> timeout = kTimeout;
  SetClock clock;
  Arrivals links;
  NoControl control;
  MessageQueues queues({.rank = 1, .timeout = &timeout, .clock = &clock}, links, control);
  std::vector<float> values(20);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    Request request;
    request.out = Buffer(std::span(values));
    request.from = 0;
    queues.add(id, request);
  }
  const auto wait = [&] { return queues.wait({}, base::kNever); };
  for (std::uint64_t id = 1; id <= 3; ++id) {
    clock.time += kTimeout - 1ms;
    EXPECT_TRUE(wait().empty());
    links.arrived = 1;
    EXPECT_EQ(wait(), std::vector{id});
  }
  clock.time += kTimeout;
  EXPECT_THROW(static_cast<void>(wait()), Timeout);
}

}  // namespace
}  // namespace syncopate::collective::group
