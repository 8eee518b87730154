// A program of a job: starting it, and reading what it writes.
#include "launch/job/rank.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace syncopate::tools::launch::job {

namespace {
constexpr std::chrono::seconds kShortLife{1};
constexpr int kMostShortLives = 3;
}  // namespace

void Rank::start() {
  process = process::start(program);
  since_ = std::chrono::steady_clock::now();
  process::set_nonblocking(process.output.get());
  process::set_nonblocking(process.error.get());
  if (process.blame.open()) process::set_nonblocking(process.blame.get());
}

bool Rank::read(Stream stream, const LineSplitter::Sink& pass) {
  process::Descriptor& file = stream == Stream::output  ? process.output
                              : stream == Stream::error ? process.error
                                                        : process.blame;
  LineSplitter& lines = stream == Stream::output ? output : stream == Stream::error ? error : blame;
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
  if (got > 0) {
    lines.take({buffer.data(), static_cast<std::size_t>(got)}, pass);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    lines.finish(pass);
    file.close();
  }
  return got > 0;
}

void Rank::kill_group() const {
  if (process.pid > 0) kill(-process.pid, SIGKILL);
}

void Rank::reap() {
  while (process.pid > 0 && waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  process.pid = -1;
}

bool Rank::may_start_again() {
  const bool was_short = std::chrono::steady_clock::now() - since_ < kShortLife;
  short_lives_ = was_short ? short_lives_ + 1 : 0;
  return program.restarts && !was_asked && short_lives_ < kMostShortLives;
}

}  // namespace syncopate::tools::launch::job
