// A program to start, and how it is started: own process group, own pipes, dead when its launcher dies.
#include "launch/process/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "launch/process/signals.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/blame.hpp"

namespace syncopate::tools::launch::process {
namespace {

bool executable(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

/// The arguments of exec, made before the fork: between fork and exec only async-signal-safe calls are allowed.
struct Image {
  std::string path;
  std::vector<std::string> words;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  rlim_t descriptors;
};

Image image_of(Program program, int blame) {
  if (blame >= 0) program.environment["SYNCOPATE_BLAME_FD"] = BlameDescriptor::of(blame).text();
  Image image{.path = resolve_program(program.argv.at(0)),
              .words = {},
              .arguments = {},
              .environment = {},
              .descriptors = program.descriptors};
  image.words = program.argv;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::string name(line.substr(0, line.find('=')));
    if (!program.environment.contains(name)) image.words.emplace_back(line);
  }
  for (const auto& [name, value] : program.environment) image.words.push_back(name + "=" + value);
  for (std::size_t i = 0; i < image.words.size(); ++i)
    (i < program.argv.size() ? image.arguments : image.environment).push_back(image.words[i].data());
  image.arguments.push_back(nullptr);
  image.environment.push_back(nullptr);
  return image;
}

struct ChildEnds {
  int input, output, error, refusal, blame;
};

void reset_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGTSTP, SIGQUIT}) signal(number, SIG_DFL);
  if (!hangup_is_ignored()) signal(SIGHUP, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// runs on: the forked child, up to exec.
[[noreturn]] void become(const Image& image, const ChildEnds& ends, pid_t launcher) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(127);  // the launcher died before the line above took effect
  reset_signals();
  rlimit limit{};
  if (image.descriptors != RLIM_INFINITY && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = image.descriptors;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  dup2(ends.input, STDIN_FILENO);
  dup2(ends.output, STDOUT_FILENO);
  dup2(ends.error, STDERR_FILENO);
  if (ends.blame >= 0) fcntl(ends.blame, F_SETFD, 0);  // survives exec under its own number
  execve(image.path.c_str(), image.arguments.data(), image.environment.data());
  const int why = errno;
  const ssize_t ignored = write(ends.refusal, &why, sizeof why);
  _exit(ignored == sizeof why ? 127 : 126);
}

/// stdin of a program that gets nothing; otherwise the read end of a pipe that holds `input`, whose buffer has 64 KiB.
Pipe input_of(const Program& program) {
  if (program.input.empty() && !program.signals_by_input)
    return {Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)), Descriptor()};
  Pipe pipe = make_pipe();
  write_all(pipe.write.get(), program.input);
  if (!program.signals_by_input) pipe.write.close();
  return pipe;
}

std::string drained(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(file, buffer, sizeof buffer)) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

std::string resolve_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (executable(name)) return name;
    throw Misuse(fmt::format("cannot run '{}': {}", name, std::strerror(errno)));
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!name.empty()) {
    const auto colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    if (const std::string file = (folder.empty() ? "." : folder) + "/" + name; executable(file)) return file;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  throw Misuse(fmt::format("cannot run '{}': no such program in PATH", name));
}

Started start(const Program& program) {
  Pipe input = input_of(program), output = make_pipe(), error = make_pipe(), refusal = make_pipe();
  Pipe blame = program.blames ? make_pipe() : Pipe();
  Image image = image_of(program, blame.write.get());
  const ChildEnds ends{input.read.get(), output.write.get(), error.write.get(), refusal.write.get(), blame.write.get()};
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail("cannot start a process");
  if (pid == 0) become(image, ends, launcher);
  setpgid(pid, pid);  // the child calls it too: after either call the group exists
  refusal.write.close();
  int why = 0;
  if (read(refusal.read.get(), &why, sizeof why) == sizeof why) {
    waitpid(pid, nullptr, 0);
    throw Misuse(fmt::format("cannot run '{}': {}", image.path, std::strerror(why)));
  }
  return {pid, std::move(input.write), std::move(output.read), std::move(error.read), std::move(blame.read)};
}

std::string run_quietly(const Program& program) {
  const Started child = start(program);
  const std::string output = drained(child.output.get());
  const std::string error = drained(child.error.get());
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  throw SystemFailure(fmt::format("`{}` failed: {}", fmt::join(program.argv, " "), error));
}

}  // namespace syncopate::tools::launch::process
