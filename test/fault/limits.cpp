// Limits of the system: a rank that gets no descriptors or no threads reports it, and no rank waits forever.
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "processes.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/synchronizer.hpp"
#include "transport/socket/poller.hpp"

namespace syncopate {
namespace {

constexpr int kRanks = 3, kLimited = 1;
const std::string kNoDescriptors = "Too many open files; raise the limit (ulimit -n)";

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
                         .rendezvous = fmt::format("local://limits-{}", ::getpid()),
                         .as_nobody = true});
    for (int rank = 0; rank < kRanks; ++rank) all.push_back(job.ending_of(rank));
  }
  [[nodiscard]] bool are_in_order() const {
    return std::ranges::all_of(all, [](const test::Ending& ending) { return std::string_view(ending.kind) == "none"; });
  }
  /// The limited rank states the cause. The others get it, or time out because that rank did not come, or, if
  /// `may_be_lost`, notice its end.
  void expect_named(const std::string& where, int limited, const std::string& cause, bool may_be_lost = false) const {
    const std::string name = fmt::format("rank {} ", limited);
    for (int rank = 0; rank < kRanks; ++rank) {
      const test::Ending& ending = all[static_cast<std::size_t>(rank)];
      const std::string kind = ending.kind, message = ending.message;
      const bool has_cause = message.find(cause) != std::string::npos, names = message.find(name) != std::string::npos;
      const bool is_told =
          (names && (kind == "Timeout" || has_cause)) || (may_be_lost && kind == "PeerLost" && ending.peer == limited);
      const bool is_right = rank == limited ? kind == "SystemFailure" && has_cause : is_told;
      EXPECT_TRUE(is_right) << fmt::format("{}, rank {}: {}: {}", where, rank, kind, message);
    }
  }
  std::vector<test::Ending> all;
};

TEST(Limit, OfDescriptorsIsTheErrorOfThatRankAndTheCauseForTheOthers) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer opens a pipe to read a type, for which no descriptor is left";
#endif
  for (const int limited : {0, kLimited})
    for (std::size_t free = 0;; ++free) {
      ASSERT_LT(free, 64U);
      const Endings endings([&](int rank) {
        if (rank == limited) leave_descriptors(free);
      });
      if (endings.are_in_order()) break;
      endings.expect_named(fmt::format("{} descriptors of rank {}", free, limited), limited, kNoDescriptors);
    }
}

/// Descriptors that each rank of a group of one host has for it after an all-reduce, if they are more than `most`.
std::vector<std::string> descriptors_beyond(std::ptrdiff_t most, int ranks) {
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  std::ptrdiff_t before = 0;
  const auto count = [&](Group& group, int step) {
    reduce_twice(group, step);
    if (const std::ptrdiff_t used = open_now() - before; used > most) throw Misuse(fmt::format("{} descriptors", used));
  };
  const test::Job job(ranks, count,
                      {.leaves = [](int, int step) { return step == 1; },
                       .before_join =
                           [&](int) {
                             const transport::socket::Poller of_the_process;  // has a descriptor for all groups
                             before = open_now();
                           }});
  std::vector<std::string> found;
  for (int rank = 0; rank < ranks; ++rank)
    if (const test::Ending ending = job.ending_of(rank); std::string_view(ending.kind) != "none")
      found.emplace_back(ending.message);
  return found;
}

TEST(Descriptors, OfAGroupAreFew) {
  EXPECT_EQ(descriptors_beyond(4, 2), std::vector<std::string>{});
  EXPECT_EQ(descriptors_beyond(9, 4), std::vector<std::string>{});
}

TEST(Limit, OfThreadsIsASystemFailureOfThatRank) {
  const Endings endings([](int rank) {
    if (rank == kLimited) limit(RLIMIT_NPROC, 1);
  });
  EXPECT_STREQ(endings.all[kLimited].kind, "SystemFailure") << endings.all[kLimited].message;
  endings.expect_named("no threads", kLimited, "raise the limit of threads", true);
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
  endings.expect_named("no thread for the synchronizer", kLimited, "thread");
}

}  // namespace
}  // namespace syncopate
