// Start-up: a server that waits for input ends on a signal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

namespace syncopate {
namespace {

/// The exit status of a process; one that hangs is ended by SIGKILL.
int status_of(pid_t process) {
  const auto bound = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > bound) ::kill(process, SIGKILL);
    std::this_thread::yield();
  }
  return status;
}

TEST(StartUp, EndsByASignalWhileAFileDoesNotComeToItsEnd) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const std::string secret =
        (std::filesystem::temp_directory_path() / ("syncopate-fifo-" + std::to_string(::getpid()))).string();
    ASSERT_EQ(::mkfifo(secret.c_str(), 0600), 0);
    std::string words[] = {"syncopate-server", "--address", "127.0.0.1:0", "--secret-file", secret};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), nullptr};
    pid_t server = -1;
    ASSERT_EQ(::posix_spawn(&server, SYNCOPATE_SERVER_PROGRAM, nullptr, nullptr, arguments, environ), 0);
    const int writer = ::open(secret.c_str(), O_WRONLY | O_CLOEXEC);  // returns when the server has opened it
    ::kill(server, number);
    const int status = status_of(server);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    ::close(writer);
    std::filesystem::remove(secret);
  }
}

}  // namespace
}  // namespace syncopate
