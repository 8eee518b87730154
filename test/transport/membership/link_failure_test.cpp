// Lost links: which of several a rank reports, and when.
#include "transport/membership/link_failure.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace syncopate::transport::membership {
namespace {

using namespace std::chrono_literals;

/// Records the reports.
class Recorder final : public Control {
 public:
  [[nodiscard]] std::optional<Failure> failure() const override { return std::nullopt; }
  [[nodiscard]] bool failed() const noexcept override { return false; }
  void report(Failure failure) override { reports.push_back(std::move(failure)); }
  void began(const OperationRecord& /*record*/) override {}
  void mismatch(int /*peer*/, std::uint64_t /*number*/) override {}
  [[nodiscard]] bool has_left(int peer) const override { return peer == left; }
  [[nodiscard]] std::string laggards(std::uint64_t /*number*/) const override { return {}; }

  std::vector<Failure> reports;
  int left = -1;
};

class LostLinks : public testing::Test {
 protected:
  base::Time report(int peer, base::Duration at) {
    return failures_.report(peer, {.reason = "the connection was closed"}, begin_ + at);
  }

  const base::Time begin_{1h};
  std::shared_ptr<Recorder> control_ = std::make_shared<Recorder>();
  LinkFailures failures_{0, control_};
};

/// Other peers close their links because of that one.
TEST_F(LostLinks, ThatFollowEachOtherAreReportedAsTheFirstOfThem) {
  const base::Time end = report(4, 0ms);
  EXPECT_EQ(end, begin_ + 300ms);
  EXPECT_EQ(report(7, 200ms), end);
  EXPECT_TRUE(control_->reports.empty()) << "control may still bring the cause";
  static_cast<void>(report(7, 300ms));
  ASSERT_EQ(control_->reports.size(), 1U);
  EXPECT_EQ(control_->reports[0].where.peer, 4);
  EXPECT_EQ(control_->reports[0].message, "rank 0 lost rank 4: the connection was closed");
}

TEST_F(LostLinks, AreWaitedForAnewAfterAllWereWell) {
  static_cast<void>(report(4, 0ms));
  failures_.clear();
  EXPECT_EQ(report(7, 400ms), begin_ + 700ms);
  EXPECT_TRUE(control_->reports.empty());
}

TEST_F(LostLinks, ToARankThatHasLeftAreSaidToBeThat) {
  control_->left = 4;
  static_cast<void>(report(4, 0ms));
  static_cast<void>(report(4, 300ms));
  ASSERT_EQ(control_->reports.size(), 1U);
  EXPECT_EQ(control_->reports[0].message, "rank 4 left the group while rank 0 still exchanged data with it");
}

}  // namespace
}  // namespace syncopate::transport::membership
