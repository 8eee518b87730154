// Forked children: copies of a job's servers and workers refuse use, end at once, and leave the parent's as they are.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "service/job.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;

bool is_refused(const std::function<void()>& use) {
  try {
    use();
    return false;
  } catch (const Misuse&) {
    return true;
  }
}

/// Whether a child that runs `body` ends with success within 20 s.
bool succeeds(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void expect_a_child_is_harmless(std::size_t count, const ServerOptions& options) {
  Servers servers(count, options);
  Program program(servers, {.servers = {}, .workers = 1});
  program.start();
  program.step();
  EXPECT_TRUE(succeeds([&] {
    const bool are_refused = is_refused([&] { program.worker().sync(0); }) &&
                             is_refused([&] { std::ignore = program.worker().statistics(); }) &&
                             is_refused([&] { std::ignore = servers[0].status(); }) &&
                             is_refused([&] { std::ignore = servers[0].wait_for_end(1s); });
    program.leave();
    for (std::size_t server = 0; server < count; ++server) servers.stop(server);
    return are_refused;
  }));
  program.go_on(3);
  EXPECT_EQ(program.worker().statistics().reconnections, 0U);
  EXPECT_TRUE(servers[0].wait_for_end(20s));
}

TEST(ForkedJob, AChildEndsAndParentsGoOn) {
  expect_a_child_is_harmless(1, {});
  expect_a_child_is_harmless(2, {.replicas = 1});
}

}  // namespace
}  // namespace syncopate
