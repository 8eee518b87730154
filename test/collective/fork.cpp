// Forked children: their use of copies of the parent's objects does not affect the parent.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

constexpr int kMisuse = 3, kOther = 4;

/// The exit code of a child that runs `body`; it is killed after ten seconds.
int exit_code_of(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    try {
      body();
    } catch (const Misuse&) {
      ::_exit(kMisuse);
    } catch (...) {
      ::_exit(kOther);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

class Fork : public testing::TestWithParam<const char*> {
 protected:
  std::vector<std::unique_ptr<Group>> groups_ = test::joined(2, {.transport = transport_named(GetParam())});
};

TEST_P(Fork, AChildThatDestroysItsCopiesLeavesTheParentsAsTheyAre) {
  constexpr std::size_t kCount = 100'000;
  auto memory = groups_[0]->allocate<float>(kCount);
  const auto values = std::span(memory.get(), kCount);
  std::ranges::fill(values, 7.0F);
  std::vector<std::unique_ptr<Synchronizer>> synchronizers(2);
  const auto step = [&](int rank) {
    Synchronizer& synchronizer = *synchronizers[static_cast<std::size_t>(rank)];
    auto* const gradient = static_cast<float*>(synchronizer.gradient(0).data);
    gradient[0] = static_cast<float>(rank);
    synchronizer.ready(0);
    synchronizer.wait();
    EXPECT_EQ(gradient[0], 0.5F);
    float started = 1;  // by a worker thread
    start(*groups_[static_cast<std::size_t>(rank)], Collective::allreduce, Buffer(&started, 1, DType::f32)).wait();
    EXPECT_EQ(started, 2);
  };
  test::on_ranks(2, [&](int rank) {
    const auto own = static_cast<std::size_t>(rank);
    synchronizers[own] = std::make_unique<Synchronizer>(*groups_[own], std::vector<Gradient>{{"a", 10}});
    step(rank);
  });
  EXPECT_EQ(exit_code_of([&] {
              synchronizers.clear();
              memory.reset();
              groups_.clear();
            }),
            0);
  EXPECT_EQ(std::ranges::count(values, 7.0F), std::ptrdiff_t{kCount});
  test::on_ranks(2, step);
}

TEST_P(Fork, AChildThatUsesACopyIsToldSo) {
  std::vector<std::unique_ptr<Synchronizer>> synchronizers(2);
  test::on_ranks(2, [&](int rank) {
    const auto own = static_cast<std::size_t>(rank);
    synchronizers[own] = std::make_unique<Synchronizer>(*groups_[own], std::vector<Gradient>{{"a", 10}});
  });
  std::vector<float> values(10);
  const Work work = start_recv(*groups_[0], 1, Buffer(std::span(values)));
  const std::function<void()> uses[] = {
      [&] { allreduce(*groups_[0], std::span(values)); },
      [&] { start(*groups_[0], Collective::allreduce, Buffer(std::span(values))).wait(); },
      [&] { static_cast<void>(groups_[0]->split(0, 0)); },
      [&] { static_cast<void>(groups_[0]->allocate<float>(1)); },
      [&] { work.wait(); },
      [&] { synchronizers[0]->ready(0); },
      [&] { synchronizers[0]->wait(); },
  };
  for (std::size_t use = 0; use < std::size(uses); ++use) EXPECT_EQ(exit_code_of(uses[use]), kMisuse) << use;
  EXPECT_EQ(exit_code_of([&] { groups_[0]->abort("a child's opinion"); }), 0);
  std::vector<float> sent(10);
  send(*groups_[1], 0, Buffer(std::span(sent)));
  work.wait();
}

INSTANTIATE_TEST_SUITE_P(Over, Fork, testing::Values("tcp", "shm"), [](const auto& one) { return one.param; });

}  // namespace
}  // namespace syncopate
