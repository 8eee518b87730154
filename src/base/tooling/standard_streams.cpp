// Standard output and error of our own programs: a failed write to standard output is kept until finish_output.
#include "syncopate/tooling/standard_streams.hpp"

#include <fcntl.h>
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

Ready ready_within(std::chrono::milliseconds patience) {
  return [patience](int file) {
    pollfd ready{.fd = file, .events = POLLOUT, .revents = 0};
    return ::poll(&ready, 1, static_cast<int>(patience.count())) == 1 && (ready.revents & POLLOUT) != 0 &&
           (ready.revents & POLLERR) == 0;
  };
}

void hold_standard_descriptors() noexcept {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})  // `open` returns the lowest that is closed
    if (::fcntl(file, F_GETFD) < 0) static_cast<void>(::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

bool write_when(const Ready& ready, int file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    if (!ready(file)) {
      errno = 0;
      return false;
    }
    const ssize_t written = ::write(file, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

bool write_at_once(int file, std::string_view bytes) noexcept {
  return write_when(ready_within(std::chrono::milliseconds(0)), file, bytes);
}

void write_output(std::string_view text, const Ready& ready) noexcept {
  if (ready ? write_when(ready, STDOUT_FILENO, text) : write_all(STDOUT_FILENO, text)) return;
  if (errno != 0) note_failure(errno);
}

void write_error(std::string_view text, const Ready& ready) noexcept {
  (void)(ready ? write_when(ready, STDERR_FILENO, text) : write_all(STDERR_FILENO, text));
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_failure(errno != 0 ? errno : EIO);
  const int error = output_errno;
  if (error == 0) return;
  if (error == EPIPE) end_by_broken_pipe();
  throw SystemFailure(fmt::format("cannot write to standard output: {}", std::strerror(error)));
}

}  // namespace syncopate
