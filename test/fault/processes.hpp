// Ranks as processes that can be killed and stopped, each of which reports its end to the test over a pipe.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/error.hpp"
#include "syncopate/group.hpp"

namespace syncopate::test {

/// How a rank ended: its error's kind, the rank it blames, and when, on the machine's monotonic clock.
struct Ending {
  char kind[32] = "none";
  int rank = -1;  ///< the rank that reports
  int peer = -1;  ///< the rank it blames
  char operation[200] = "";
  char tensor[40] = "";
  std::int64_t at_ns = 0;
  char message[400] = "";
};

inline std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// How a job's processes join, and when they leave.
struct JobOptions {
  std::string transport = "auto";
  std::function<bool(int rank, int step)> leaves = [](int, int) { return false; };
  std::function<void(int rank)> before_join = [](int) {};
  std::optional<std::chrono::milliseconds> silence, join_timeout;
  std::string rendezvous;  ///< empty: a folder
  bool as_nobody = false;  ///< if this process is root's, which has no limit of threads
};

/// A job of `size` processes over loopback. Every process calls `body(group, step)` for step 0, 1, ... until it throws,
/// or leaves in order before the step `leaves(rank, step)`.
class Job final {
 public:
  using Body = std::function<void(Group&, int step)>;

  explicit Job(int size, const Body& body, JobOptions options = {}) : options_(std::move(options)) {
    char pattern[] = "/tmp/syncopate-fault-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    if (is_limited() && ::chown(folder_.c_str(), kNobody, kNobody) != 0)
      throw SystemFailure("no folder for another user");
    for (int rank = 0; rank < size; ++rank) launch(rank, size, body);
  }
  ~Job() {
    for (Process& process : processes_) {
      ::kill(process.pid, SIGCONT);
      ::kill(process.pid, SIGKILL);
      ::waitpid(process.pid, nullptr, 0);
      ::close(process.progress);
      ::close(process.ending);
    }
    std::filesystem::remove_all(folder_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Returns when `rank` has finished `steps` more steps. False if it ended before.
  [[nodiscard]] bool await_steps(int rank, int steps) const {
    char byte = 0;
    for (int i = 0; i < steps; ++i)
      if (::read(processes_[static_cast<std::size_t>(rank)].progress, &byte, 1) != 1) return false;
    return true;
  }
  [[nodiscard]] pid_t process(int rank) const { return processes_[static_cast<std::size_t>(rank)].pid; }
  void signal(int rank, int number) const { ::kill(processes_[static_cast<std::size_t>(rank)].pid, number); }
  /// Waits for the rank's report; "hangs" if there is none for a minute.
  [[nodiscard]] Ending ending_of(int rank) const {
    Ending ending;
    pollfd said{processes_[static_cast<std::size_t>(rank)].ending, POLLIN, 0};
    if (::poll(&said, 1, 60'000) == 0) {
      std::strcpy(ending.kind, "hangs");
      return ending;
    }
    const auto got = ::read(said.fd, &ending, sizeof ending);
    if (got != sizeof ending) std::strcpy(ending.kind, "no word");
    return ending;
  }

 private:
  struct Process {
    pid_t pid = -1;
    int progress = -1, ending = -1;
  };

  void launch(int rank, int size, const Body& body) {
    int progress[2], ending[2];
    if (::pipe(progress) != 0 || ::pipe(ending) != 0) throw SystemFailure("no pipes");
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const Process& other : processes_) {
        ::close(other.progress);
        ::close(other.ending);
      }
      ::close(progress[0]);
      ::close(ending[0]);
      live({rank, size, progress[1], ending[1]}, body);
      ::_exit(0);
    }
    ::close(progress[1]);
    ::close(ending[1]);
    processes_.push_back({pid, progress[0], ending[0]});
  }

  struct Life {
    int rank, size;
    int progress, ending;  ///< descriptors to write to
  };

  void live(const Life& life, const Body& body) const {
    Ending ending;
    try {
      if (is_limited() && ::setresuid(kNobody, kNobody, kNobody) != 0) throw SystemFailure("no other user");
      options_.before_join(life.rank);
      const std::string folder = "file://" + folder_;
      const auto group = Group::join({.rank = life.rank,
                                      .size = life.size,
                                      .rendezvous = options_.rendezvous.empty() ? folder : options_.rendezvous,
                                      .join_timeout = options_.join_timeout,
                                      .silence = options_.silence,
                                      .transport = transport_named(options_.transport)});
      for (int step = 0; !options_.leaves(life.rank, step); ++step) {
        body(*group, step);
        if (::write(life.progress, "s", 1) != 1) break;
      }
    } catch (const Error& error) {
      std::strncpy(ending.kind, name_of(error.kind()).data(), sizeof ending.kind - 1);
      std::strncpy(ending.message, error.what(), sizeof ending.message - 1);
      ending.rank = error.where().rank;
      ending.peer = error.where().peer;
      std::strncpy(ending.operation, error.where().operation.c_str(), sizeof ending.operation - 1);
      std::strncpy(ending.tensor, error.where().tensor.c_str(), sizeof ending.tensor - 1);
    } catch (const std::exception& error) {
      std::strcpy(ending.kind, "unnamed");
      std::strncpy(ending.message, error.what(), sizeof ending.message - 1);
    }
    ending.at_ns = now_ns();
    [[maybe_unused]] const auto written = ::write(life.ending, &ending, sizeof ending);
  }

  static constexpr uid_t kNobody = 65534;
  [[nodiscard]] bool is_limited() const { return options_.as_nobody && ::getuid() == 0; }

  JobOptions options_;
  std::string folder_;
  std::vector<Process> processes_;
};

}  // namespace syncopate::test
