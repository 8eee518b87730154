// Guardian: a small process that outlives a killed launcher just long enough to clean up behind it.
#include "launch/process/guardian.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace syncopate::tools::launch::process {
namespace {

constexpr pid_t kDismissed = 0;

/// Holds nothing of the launcher's but the pipe: a pipe of the launcher's own output would otherwise stay open.
void let_go_of_everything(int orders) {
  setsid();  // a Ctrl-C on the launcher's terminal is not for the guardian
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  prctl(PR_SET_NAME, "sync-guardian");
  dup2(orders, 3);
  close_range(4, ~0U, 0);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int file : {0, 1, 2}) dup2(nothing, file);
  if (nothing > 3) close(nothing);
}

/// runs on: the guardian process.
[[noreturn]] void stand_guard(const std::vector<std::string>& files, int orders) {
  let_go_of_everything(orders);
  std::vector<pid_t> groups;
  while (true) {
    pid_t group = kDismissed;
    const ssize_t got = read(3, &group, sizeof group);
    if (got < 0 && errno == EINTR) continue;
    if (got == sizeof group && group == kDismissed) _exit(0);
    if (got != sizeof group) break;
    groups.push_back(group);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  for (const std::string& file : files) unlink(file.c_str());
  _exit(0);
}

}  // namespace

Guardian::Guardian(std::vector<std::string> files) {
  Pipe pipe = make_pipe();
  pid_ = fork();
  if (pid_ < 0) fail("cannot start a process");
  if (pid_ == 0) {
    pipe.write.close();
    stand_guard(files, pipe.read.get());
  }
  orders_ = std::move(pipe.write);
}

Guardian::~Guardian() {
  watch(kDismissed);
  orders_.close();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::watch(pid_t group) {
  write_to_program(orders_.get(), {reinterpret_cast<const char*>(&group), sizeof group});
}

}  // namespace syncopate::tools::launch::process
