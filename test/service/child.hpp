// Child: this test program as another process that plays a role, and can be killed and stopped.
#pragma once

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace syncopate::test {

/// Runs the disabled test `part`, with `words` in its environment.
class Child final {
 public:
  Child(const std::string& part, const std::map<std::string, std::string>& words) {
    std::vector<std::string> arguments{"test", "--gtest_filter=" + part, "--gtest_also_run_disabled_tests"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    for (const auto& [name, value] : words) ::setenv(name.c_str(), value.c_str(), 1);
    if (::posix_spawn(&process_, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) != 0) process_ = -1;
  }
  ~Child() { kill(); }
  Child(Child&& other) noexcept : process_(std::exchange(other.process_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(process_, other.process_);
    return *this;
  }
  void signal(int number) const { ::kill(process_, number); }
  /// Returns when the process is gone.
  void kill() {
    if (process_ <= 0) return;
    signal(SIGCONT);
    signal(SIGKILL);
    ::waitpid(std::exchange(process_, -1), nullptr, 0);
  }
  /// Returns when its last thread has stopped: until then it answers.
  void stop() const {
    signal(SIGSTOP);
    ::waitpid(process_, nullptr, WUNTRACED);
  }
  /// Its exit code; -1 if it was killed.
  [[nodiscard]] int await_exit() {
    int status = 0;
    ::waitpid(std::exchange(process_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Whether it has ended; its exit code is awaited then.
  [[nodiscard]] bool has_ended() const {
    siginfo_t about{};
    return ::waitid(P_PID, static_cast<id_t>(process_), &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid != 0;
  }

 private:
  pid_t process_ = -1;
};

/// Waits in a child that its parent will end.
[[noreturn]] inline void wait_for_the_end() {
  while (::getppid() != 1) ::poll(nullptr, 0, 1000);
  ::_exit(0);
}

}  // namespace syncopate::test
