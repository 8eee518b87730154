// Holders: the sleeping processes that keep a lab's namespaces alive, and the way into those namespaces.
#include "lab/holder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "launch/process/descriptor.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::lab {
namespace {

using launch::process::write_all;

void write_file(const char* path, const std::string& text) {
  const launch::process::Descriptor file(open(path, O_WRONLY | O_CLOEXEC));
  if (file.open()) write_all(file.get(), text);
}

/// A process that only waits to be killed, holding nothing of the launcher's but `report`.
void detach(int report, const std::string& name) {
  prctl(PR_SET_NAME, name.c_str());
  dup2(report, 3);
  close_range(4, ~0U, 0);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int file : {0, 1, 2}) dup2(nothing, file);
  if (nothing > 3) close(nothing);
  for (const int number : {SIGINT, SIGHUP, SIGPIPE, SIGTSTP}) signal(number, SIG_IGN);
  for (const int number : {SIGTERM, SIGCHLD}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void refuse(const char* step) {
  write_all(3, fmt::format("cannot {}: {}\n", step, std::strerror(errno)));
  _exit(1);
}

[[noreturn]] void sleep_until_killed() {
  close(3);
  while (true) pause();
}

/// Root takes its own rights; anybody else, and a root without them, becomes root of a user namespace.
void gain_rights() {
  if (geteuid() == 0 && unshare(CLONE_NEWNET) == 0) return;
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) refuse("make a user namespace");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", fmt::format("0 {} 1", user));
  write_file("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

void unshare_host(const std::string& name) {
  if (unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS) != 0) refuse("make a network namespace");
  if (sethostname(name.data(), name.size()) != 0) refuse("set a hostname");
  // Later mounts of the machine appear inside; mounts made inside do not appear outside.
  if (mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) refuse("make mounts private");
  // /sys/class/net of this host, where the kernel allows it; without it only what reads that folder sees more.
  (void)mount("sysfs", "/sys", "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
  write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

/// runs on: the process of one host.
[[noreturn]] void be_host(int index, const std::string& hosts_file, pid_t parent) {
  const std::string name = fmt::format("{}{}", kHostName, index);
  prctl(PR_SET_NAME, ("lab-" + name).c_str());
  unshare_host(name);
  (void)mount(hosts_file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 1);  // its /proc/<pid>/ns must stay ours to open
  if (getppid() != parent) _exit(1);
  write_all(3, fmt::format("host {} {}\n", index, getpid()));
  sleep_until_killed();
}

/// runs on: the process of the bridge.
[[noreturn]] void be_bridge(const HolderOptions& options, pid_t parent, int report) {
  setsid();
  detach(report, "lab-bridge");
  gain_rights();
  unshare_host("bridge");
  if (!options.detached) prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 1);
  if (!options.detached && getppid() != parent) _exit(1);
  const pid_t self = getpid();
  for (int i = 0; i < options.hosts; ++i) {
    const pid_t child = fork();
    if (child < 0) refuse("start a process");
    if (child == 0) be_host(i, options.hosts_file, self);
  }
  sleep_until_killed();
}

/// Reads "host I PID" lines until all are there; anything else, or silence, is a refusal.
Holders read_report(int file, pid_t bridge, int hosts) {
  constexpr int kPatienceMs = 10'000;
  Holders holders{.bridge = bridge, .hosts = std::vector<pid_t>(static_cast<std::size_t>(hosts), 0)};
  std::string text;
  int known = 0;
  while (known < hosts) {
    pollfd ready{.fd = file, .events = POLLIN, .revents = 0};
    char buffer[512];
    const ssize_t got = poll(&ready, 1, kPatienceMs) > 0 ? read(file, buffer, sizeof buffer) : 0;
    if (got <= 0) throw SystemFailure("no answer");
    text.append(buffer, static_cast<std::size_t>(got));
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      std::istringstream line(text.substr(0, end));
      std::string word;
      int index = -1;
      pid_t pid = 0;
      line >> word >> index >> pid;
      if (word != "host" || index < 0 || index >= hosts) throw SystemFailure(text.substr(0, end));
      holders.hosts[static_cast<std::size_t>(index)] = pid;
      text.erase(0, end + 1);
      ++known;
    }
  }
  return holders;
}

bool same_namespace(const std::string& theirs, const char* ours) {
  char a[64], b[64];
  const ssize_t n = readlink(theirs.c_str(), a, sizeof a), m = readlink(ours, b, sizeof b);
  return n > 0 && n == m && std::memcmp(a, b, static_cast<std::size_t>(n)) == 0;
}

}  // namespace

Holders start_holders(const HolderOptions& options) {
  launch::process::Pipe report = launch::process::make_pipe();
  const pid_t parent = getpid();
  const pid_t bridge = fork();
  if (bridge < 0) launch::process::fail("cannot start a process");
  if (bridge == 0) be_bridge(options, parent, report.write.get());
  report.write.close();
  try {
    return read_report(report.read.get(), bridge, options.hosts);
  } catch (const SystemFailure& why) {
    kill(bridge, SIGKILL);
    waitpid(bridge, nullptr, 0);
    throw SystemFailure(fmt::format(
        "no lab on this machine: it needs root or user namespaces ({}). Run as root, or allow user namespaces (sysctl "
        "kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000; in a container: --privileged)",
        why.what()));
  }
}

void enter_namespaces(pid_t holder) {
  struct Kind {
    const char* name;
    int flag;
  };
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  const pid_t parent = getppid();
  const launch::process::Descriptor folder(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const Kind kind :
       {Kind{"user", CLONE_NEWUSER}, {"net", CLONE_NEWNET}, {"uts", CLONE_NEWUTS}, {"mnt", CLONE_NEWNS}}) {
    const std::string theirs = fmt::format("/proc/{}/ns/{}", holder, kind.name);
    if (same_namespace(theirs, fmt::format("/proc/self/ns/{}", kind.name).c_str())) continue;
    const launch::process::Descriptor file(open(theirs.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.open() || setns(file.get(), kind.flag) != 0) launch::process::fail("cannot enter " + theirs);
  }
  if (folder.open()) (void)fchdir(folder.get());
  // Changing the user namespace has cleared it. A parent that died in between is noticed by its absence.
  if (death_signal == 0) return;
  prctl(PR_SET_PDEATHSIG, death_signal);
  if (getppid() != parent) raise(death_signal);
}

std::string start_time(pid_t pid) {
  // proc(5): the name may hold spaces and ')'; behind the last ')' the start time is the 20th field.
  const std::string line = launch::process::read_file(fmt::format("/proc/{}/stat", pid));
  const auto close = line.rfind(')');
  if (close == std::string::npos) return {};
  std::istringstream fields(line.substr(close + 1));
  std::string field;
  fields >> field;
  if (field == "Z" || field == "X") return {};  // dead, only not yet reaped by its parent
  for (int i = 1; i < 20; ++i) fields >> field;
  return field;
}

}  // namespace syncopate::tools::lab
