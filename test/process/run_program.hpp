// Starts the built command line the way a user does, and records its output and exit code.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "thrown.hpp"

namespace syncopate::test {

struct Ended {
  int code = -1;  ///< exit code, or 128 + signal
  std::string output;
  std::string error;
};

struct StartOptions {
  std::map<std::string, std::string> environment;
  bool terminal = false;            ///< stdout and stderr are one terminal; all comes as `output`
  std::string output_to, error_to;  ///< a file in the place of a pipe; empty: a pipe
  int pending_signal = 0;           ///< blocked and pending when the program begins; 0: none
};

/// A running `syncopate ARGS…`. No wait is longer than a minute; a program that is still there then is killed, and the
/// test sees code 137.
class Running final {
 public:
  explicit Running(const std::vector<std::string>& arguments, const StartOptions& options = {});
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Reads until stdout holds `text` `times` times; false if the program ended or the minute passed before.
  [[nodiscard]] bool says(const std::string& text, int times = 1);
  void send(int signal) const { kill(pid_, signal); }
  void close_terminal();  ///< as a user who closes the window: the program gets SIGHUP
  [[nodiscard]] Ended end();
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const std::string& output() const noexcept { return ended_.output; }

 private:
  bool read_some();  ///< false at the end of both streams, or at the deadline

  pid_t pid_ = -1;
  int output_ = -1, error_ = -1;
  Ended ended_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + std::chrono::minutes(5);
};

[[nodiscard]] inline Ended syncopate(const std::vector<std::string>& arguments, const StartOptions& options = {}) {
  return Running(arguments, options).end();
}
/// The program refused its words: its code is 2, and its error has each of `parts`.
inline void expect_misuse(const Ended& ended, const std::vector<std::string>& parts,
                          const std::source_location& here = std::source_location::current()) {
  if (ended.code != 2)
    ADD_FAILURE_AT(here.file_name(), static_cast<int>(here.line())) << "code " << ended.code << ": " << ended.error;
  expect_words(ended.error, parts, here);
}
/// `syncopate run -n RANKS -- sh -c SCRIPT`
[[nodiscard]] std::vector<std::string> run_script(int ranks, const std::string& script);
/// Whether a process is gone, or dead and only not reaped, within ten seconds.
[[nodiscard]] bool vanishes(pid_t pid);
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);
[[nodiscard]] std::string file_text(const std::string& path);
/// A new folder that is removed with this object.
class TemporaryFolder final {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace syncopate::test
