// Descriptor: an open file that closes itself, and the few things one does with it.
#include "launch/process/descriptor.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "syncopate/error.hpp"

namespace syncopate::tools::launch::process {

void Descriptor::close() noexcept {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

rlim_t raise_descriptor_limit(rlim_t count) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min(std::max(before, count), limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(errno == EMFILE ? "cannot make a pipe (raise the hard limit of descriptors: ulimit -Hn)"
                         : "cannot make a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void write_to_program(int file, std::string_view bytes) noexcept {
  sigset_t broken, before;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  sigprocmask(SIG_BLOCK, &broken, &before);
  const timespec at_once{};
  if (!write_all(file, bytes)) sigtimedwait(&broken, nullptr, &at_once);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

std::string read_file(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void set_nonblocking(int file) { fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK); }

void fail(const std::string& what) { throw SystemFailure(what + ": " + std::strerror(errno)); }

}  // namespace syncopate::tools::launch::process
