// Servers that write snapshots at unlike speeds: they have new common steps, and never lose one.
#include <gtest/gtest.h>

#include <bit>
#include <optional>

#include "base/guarded.hpp"
#include "server/snapshot/snapshot_folder.hpp"
#include "server/snapshot/snapshot_writer.hpp"
#include "service/snapshot/snapshot_files.hpp"

namespace syncopate {
namespace {

using namespace test;
using server::Clock;
using server::Snapshot;

/// A server that takes an image in every interval, and writes one in a number of intervals. Between two calls its
/// thread waits.
class Writing final {
 public:
  Writing(const SnapshotFiles& files, std::size_t index, Clock intervals)
      : index_(index),
        intervals_(intervals),
        folder_(files.name(), index, {.level = LogLevel::off, .sink = {}}),
        writer_([this](const Snapshot& snapshot) { write(snapshot); }, index, {}) {
    setup_.servers = 2;
    setup_.tables = {{"table", 3}};
  }
  ~Writing() {
    state_.change([](State& state) { state.is_over = true; });
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

  void pass(Clock step) {
    if (begun_ && step - *begun_ >= intervals_) end(step);
    writer_.add({setup_, step, 1, 0, {server::payload_of("an image")}});
    if (begun_) {
      has_waiting_ = true;
    } else {
      await_write();
      begun_ = step;
    }
  }
  [[nodiscard]] std::optional<Clock> newest_in_common() const {
    const auto snapshot = folder_.newest_in_common();
    return snapshot ? std::optional(snapshot->step) : std::nullopt;
  }

 private:
  struct State {
    bool writes = false, may_end = false, has_ended = false, is_over = false;
  };
  void write(const Snapshot& snapshot) {
    state_.change([](State& state) { state.writes = true; });
    const auto may_end = [](const State& state) { return state.may_end || state.is_over; };
    state_.wait_until(base::kNever, may_end, [](State& state) { state.writes = state.may_end = false; });
    folder_.write(snapshot);
    state_.change([](State& state) { state.has_ended = true; });
  }
  void await_write() {
    state_.wait_until(
        base::kNever, [](const State& state) { return state.writes; }, [](State&) {});
  }
  void end(Clock step) {
    state_.change([](State& state) { state.may_end = true; });
    state_.wait_until(
        base::kNever, [](const State& state) { return state.has_ended; },
        [](State& state) { state.has_ended = false; });
    begun_.reset();
    if (!std::exchange(has_waiting_, false)) return;
    await_write();
    begun_ = step;
  }

  const std::size_t index_;
  const Clock intervals_;
  server::Setup setup_;
  std::optional<Clock> begun_;
  bool has_waiting_ = false;
  base::Guarded<State> state_;
  const server::SnapshotFolder folder_;
  server::SnapshotWriter writer_;
};

class Speeds : public testing::TestWithParam<std::pair<Clock, Clock>> {};

TEST_P(Speeds, HaveNewCommonStepsAndNeverLoseOne) {
  const SnapshotFiles files;
  Writing first(files, 0, GetParam().first), second(files, 1, GetParam().second);
  const Clock slowest = std::max(GetParam().first, GetParam().second);
  const auto bound = 4 * static_cast<Clock>(std::bit_ceil(static_cast<std::uint64_t>(slowest)));
  Clock newest = 0;
  for (Clock step = 1; step <= 80; ++step) {
    first.pass(step);
    second.pass(step);
    const Clock now = first.newest_in_common().value_or(0);
    EXPECT_EQ(now, second.newest_in_common().value_or(0));
    EXPECT_GE(now, newest) << "at step " << step;
    EXPECT_LE(step - now, bound) << "at step " << step;
    newest = now;
    EXPECT_LE(files.files().size(), 2 * (3 + server::kMostAhead));
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, Speeds,
                         testing::Values(std::pair(1, 1), std::pair(1, 3), std::pair(1, 20), std::pair(2, 3),
                                         std::pair(3, 2), std::pair(5, 7), std::pair(9, 4)),
                         [](const auto& tested) {
                           return std::to_string(tested.param.first) + "_" + std::to_string(tested.param.second);
                         });

}  // namespace
}  // namespace syncopate
