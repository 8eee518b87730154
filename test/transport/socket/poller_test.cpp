// The poller where the kernel cannot wait by nanoseconds: it still waits, and reports that.
#include "transport/socket/poller.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <thread>

#include "transport/ranks.hpp"

namespace syncopate::transport::socket {
namespace {

using namespace std::chrono_literals;

/// Makes the call fail with `error` for this thread from now on; false if the kernel has no such filters.
bool forbid(long call, int error) {
  std::array program{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class PollerWithout : public testing::TestWithParam<int> {};

TEST_P(PollerWithout, FineWaitsEndsByEventWakeAndDeadline) {
  bool is_forbidden = false;
  std::jthread([&] {
    is_forbidden = forbid(SYS_epoll_pwait2, GetParam());
    if (!is_forbidden) return;
    Poller poller;
    const base::Time begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(poller.wait(begin + 20ms).empty());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms) << "it neither spins nor ends early";
    const Descriptor listener = listen_on(Address::parse("127.0.0.1:0"));
    poller.add(listener, 5, EPOLLIN);
    const Descriptor caller = start_connection(local_address(listener), {});
    const auto ready = poller.wait(test::in(30s));
    ASSERT_EQ(ready.size(), 1U);
    EXPECT_EQ(ready[0].key, 5U);
    poller.remove(listener);
    poller.wake();
    EXPECT_TRUE(poller.wait(base::kNever).empty()) << "returns at all";
  }).join();
  if (!is_forbidden) GTEST_SKIP() << "the system filters no calls of a thread";
}

INSTANTIATE_TEST_SUITE_P(Socket, PollerWithout, testing::Values(ENOSYS, EPERM),
                         [](const auto& error) { return error.param == ENOSYS ? "TheCall" : "LeaveToCall"; });

}  // namespace
}  // namespace syncopate::transport::socket
