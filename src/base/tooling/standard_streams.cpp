// Standard output and error of our own programs: a failed write to standard output is kept until finish_output.
#include "syncopate/tooling/standard_streams.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate {
namespace {

/// errno of the first failed write to standard output, of which a process has one; 0: none has failed.
std::atomic<int> output_errno{0};

void note_failure(int error) noexcept {
  int none = 0;
  output_errno.compare_exchange_strong(none, error);
}

void end_by_broken_pipe() {
  sigset_t broken;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  ::signal(SIGPIPE, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &broken, nullptr);
  ::raise(SIGPIPE);
}

}  // namespace

bool write_all(int file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{.fd = file, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool write_at_once(int file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    pollfd ready{.fd = file, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0 || (ready.revents & POLLERR) != 0) return false;
    const ssize_t written = ::write(file, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void write_output(std::string_view text) noexcept {
  if (!write_all(STDOUT_FILENO, text)) note_failure(errno);
}

void write_error(std::string_view text) noexcept { (void)write_all(STDERR_FILENO, text); }

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_failure(errno != 0 ? errno : EIO);
  const int error = output_errno;
  if (error == 0) return;
  if (error == EPIPE) end_by_broken_pipe();
  throw SystemFailure(fmt::format("cannot write to standard output: {}", std::strerror(error)));
}

}  // namespace syncopate
