// Starts the built command line the way a user does, and records its output and exit code.
#include "process/run_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace syncopate::test {
namespace {

void put_at(const std::string& path, int place) {
  if (path.empty()) return;
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0 || dup2(file, place) < 0) _exit(125);
}

[[noreturn]] void become(const std::vector<std::string>& arguments, const StartOptions& options) {
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  put_at(options.output_to, STDOUT_FILENO);
  put_at(options.error_to, STDERR_FILENO);
  if (options.pending_signal != 0) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, options.pending_signal);
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    raise(options.pending_signal);
  }
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), SYNCOPATE_PROGRAM);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(SYNCOPATE_PROGRAM, argv.data());
  _exit(126);
}

bool take(int& file, std::string& text) {
  char buffer[65536];
  const ssize_t got = read(file, buffer, sizeof buffer);
  if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  if (got > 0 || (got < 0 && errno == EINTR)) return true;
  close(file);  // a terminal whose other end is closed returns EIO
  file = -1;
  return false;
}

}  // namespace

Running::Running(const std::vector<std::string>& arguments, const StartOptions& options) {
  if (options.terminal) {
    pid_ = forkpty(&output_, nullptr, nullptr, nullptr);
    if (pid_ == 0) become(arguments, options);
    return;
  }
  int output[2], error[2];
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(output[1], STDOUT_FILENO);
    dup2(error[1], STDERR_FILENO);
    become(arguments, options);
  }
  close(output[1]);
  close(error[1]);
  output_ = output[0];
  error_ = error[0];
}

Running::~Running() {
  if (pid_ > 0) (void)end();
}

bool Running::read_some() {
  pollfd files[] = {{.fd = output_, .events = POLLIN, .revents = 0}, {.fd = error_, .events = POLLIN, .revents = 0}};
  const auto left = deadline_ - std::chrono::steady_clock::now();
  const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  if (output_ < 0 && error_ < 0) return false;
  if (left_ms <= 0 || poll(files, 2, static_cast<int>(left_ms)) <= 0) return false;
  if (files[0].revents != 0) take(output_, ended_.output);
  if (files[1].revents != 0) take(error_, ended_.error);
  return true;
}

bool Running::says(const std::string& text, int times) {
  while (true) {
    int seen = 0;
    for (auto at = ended_.output.find(text); at != std::string::npos; at = ended_.output.find(text, at + 1)) ++seen;
    if (seen >= times) return true;
    if (!read_some()) return false;
  }
}

void Running::close_terminal() {
  close(output_);
  output_ = -1;
}

Ended Running::end() {
  while (read_some()) {
  }
  int status = 0;
  if (output_ >= 0 || error_ >= 0) kill(pid_, SIGKILL);  // the deadline has passed
  waitpid(pid_, &status, 0);
  pid_ = -1;
  for (const int file : {output_, error_})
    if (file >= 0) close(file);
  output_ = error_ = -1;
  ended_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended_;
}

std::vector<std::string> run_script(int ranks, const std::string& script) {
  return {"run", "-n", std::to_string(ranks), "--", "sh", "-c", script};
}

bool vanishes(pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    const std::string stat = file_text("/proc/" + std::to_string(pid) + "/stat");
    const auto close = stat.rfind(')');
    if (close == std::string::npos || stat.substr(close, 4).find('Z') != std::string::npos) return true;
    std::this_thread::yield();
  }
  return false;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string file_text(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = std::filesystem::temp_directory_path().string() + "/syncopate-test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace syncopate::test
