// Limits of the system: a rank that gets no descriptors or no threads reports it, and no rank waits forever.
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "processes.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

constexpr int kRanks = 3, kLimited = 1;

void limit(decltype(RLIMIT_NOFILE) resource, std::size_t most) {
  const rlimit bound{most, most};
  if (::setrlimit(resource, &bound) != 0) throw SystemFailure("no limit");
}

/// Lets this process open only `free` more descriptors.
void leave_descriptors(std::size_t free) {
  int highest = 2;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir("/proc/self/fd"), &::closedir);
  while (const dirent* entry = ::readdir(open.get())) highest = std::max(highest, std::atoi(entry->d_name));
  int filled = 0;
  while (filled <= highest) filled = ::dup(STDIN_FILENO);  // also fills the gaps
  limit(RLIMIT_NOFILE, static_cast<std::size_t>(filled) + 1 + free);
}

/// Runs a few collectives, so that ranks that could join can also leave in order.
void reduce_twice(Group& group, int /*step*/) {
  std::vector<float> values(1000, 1);
  allreduce(group, std::span(values));
}

struct Endings {
  explicit Endings(const std::function<void(int)>& before_join, const test::Job::Body& body = reduce_twice) {
    const test::Job job(kRanks, body,
                        {.leaves = [](int, int step) { return step == 2; },
                         .before_join = before_join,
                         .join_timeout = std::chrono::seconds(2),
                         .as_nobody = true});
    for (int rank = 0; rank < kRanks; ++rank) all.push_back(job.ending_of(rank));
  }
  [[nodiscard]] bool are_in_order() const {
    return std::ranges::all_of(all, [](const test::Ending& ending) { return std::string_view(ending.kind) == "none"; });
  }
  void expect_named(const std::string& where) const {
    for (int rank = 0; rank < kRanks; ++rank) {
      const test::Ending& ending = all[static_cast<std::size_t>(rank)];
      const std::string kind = ending.kind,
                        what = fmt::format("{}, rank {}: {}: {}", where, rank, kind, ending.message);
      EXPECT_TRUE(kind == "SystemFailure" || kind == "Timeout" || kind == "RemoteFailure" || kind == "PeerLost")
          << what;
      if (rank != kLimited && (kind == "PeerLost" || kind == "RemoteFailure")) {
        EXPECT_TRUE(ending.peer == kLimited || what.find("Too many open files") != std::string::npos) << what;
      }
    }
  }
  std::vector<test::Ending> all;
};

TEST(Limit, OfDescriptorsEndsInNamedErrorsOfThatRankOrForThatReason) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer opens a pipe to read a type, for which no descriptor is left";
#endif
  for (std::size_t free = 0;; ++free) {
    ASSERT_LT(free, 64U);
    const Endings endings([free](int rank) {
      if (rank == kLimited) leave_descriptors(free);
    });
    if (endings.are_in_order()) break;
    endings.expect_named(fmt::format("{} descriptors", free));
  }
}

TEST(Limit, OfThreadsIsASystemFailureOfThatRank) {
  const Endings endings([](int rank) {
    if (rank == kLimited) limit(RLIMIT_NPROC, 1);
  });
  EXPECT_STREQ(endings.all[kLimited].kind, "SystemFailure") << endings.all[kLimited].message;
  endings.expect_named("no threads");
}

TEST(Limit, OfThreadsWhenASynchronizerNeedsOneIsASystemFailureOfThatRank) {
  const Endings endings([](int) {},
                        [](Group& group, int) {
                          if (group.rank() == kLimited) limit(RLIMIT_NPROC, 1);
                          Synchronizer synchronizer(group, {{"fc1", 100}});
                          synchronizer.ready(0);
                          synchronizer.wait();
                        });
  EXPECT_STREQ(endings.all[kLimited].kind, "SystemFailure") << endings.all[kLimited].message;
  EXPECT_STREQ(endings.all[0].kind, "RemoteFailure") << endings.all[0].message;
  endings.expect_named("no thread for the synchronizer");
}

}  // namespace
}  // namespace syncopate
