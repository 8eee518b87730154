// Lab: emulated hosts on one machine, each a network namespace behind a shaped cable into one bridge.
#include "lab/lab.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "lab/cable.hpp"
#include "lab/holder.hpp"
#include "launch/process/program.hpp"
#include "launch/runtime_folder.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/json.hpp"

namespace syncopate::tools::lab {
namespace {

constexpr int kMostHosts = 128;

void check(const LabOptions& options) {
  if (options.hosts < 1 || options.hosts > kMostHosts)
    throw Misuse(fmt::format("{} hosts; allowed: 1 to {}", options.hosts, kMostHosts));
  const bool named = !options.name.empty() && options.name.size() <= 32 &&
                     options.name.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos;
  if (!named) throw Misuse(fmt::format("lab name '{}'; allowed: 1 to 32 letters, digits, '-' and '_'", options.name));
  (void)shape_of(options.rate);
}

std::string state_path(const std::string& name) {
  return fmt::format("{}/lab-{}.json", launch::runtime_folder(), name);
}

void check_programs() {
  for (const char* name : {"ip", "tc", "bridge"}) try {
      (void)launch::process::resolve_program(name);
    } catch (const Misuse&) {
      throw SystemFailure(
          fmt::format("no lab on this machine: `{}` is missing; install iproute2 (it lives in /usr/sbin, "
                      "which must be in PATH)",
                      name));
    }
}

/// Feeds `batch` to a program of iproute2 on `host`.
void configure(const Lab& lab, int host, const char* program, std::string batch) {
  std::vector<std::string> argv = lab.exec_prefix(host);
  for (const char* word : {program, "-batch", "-"}) argv.emplace_back(word);
  launch::process::run_quietly({.argv = std::move(argv), .environment = {}, .input = std::move(batch)});
}

nlohmann::json ask(const Lab& lab, int host, std::vector<std::string> command) {
  std::vector<std::string> argv = lab.exec_prefix(host);
  argv.insert(argv.end(), command.begin(), command.end());
  const std::string answer = launch::process::run_quietly({.argv = std::move(argv), .environment = {}, .input = {}});
  const auto parsed = nlohmann::json::parse(answer, nullptr, false);
  if (!parsed.is_array() || parsed.empty()) throw SystemFailure("cannot read what `" + command[0] + "` says");
  return parsed[0];
}

bool await_end(const std::vector<pid_t>& processes, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (const pid_t pid : processes)
    while (!start_time(pid).empty()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      waitpid(pid, nullptr, WNOHANG);  // it may be a child of ours
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  return true;
}

}  // namespace

Lab::Lab(Lab&& other) noexcept
    : options_(std::move(other.options_)),
      state_file_(std::move(other.state_file_)),
      holder_(std::exchange(other.holder_, 0)),
      holder_started_(std::move(other.holder_started_)),
      keepers_(std::move(other.keepers_)),
      owner_(other.owner_),
      owned_(std::exchange(other.owned_, false)) {}

Lab::~Lab() {
  if (!owned_) return;
  try {
    stop();
  } catch (const std::exception&) {  // what is left dies with this process
  }
}

Lab Lab::start(const LabOptions& options) {
  check(options);
  check_programs();
  if (auto before = find(options.name)) before->stop();
  Lab lab;
  lab.options_ = options;
  lab.state_file_ = state_path(options.name);
  const std::string names = lab.state_file_ + ".hosts";
  launch::write_private_file(names, hosts_file(options.hosts));
  std::filesystem::permissions(names, std::filesystem::perms(0644));
  const Holders holders = start_holders({.hosts = options.hosts, .hosts_file = names, .detached = options.detached});
  std::filesystem::remove(names);  // the hosts' mounts keep it
  lab.owned_ = true;               // from here on a failure takes it down again
  lab.holder_ = holders.bridge;
  lab.holder_started_ = start_time(holders.bridge);
  lab.keepers_ = holders.hosts;
  lab.owner_ = options.detached ? 0 : getpid();
  lab.save();
  lab.cable_hosts();
  lab.reshape(options.rate);
  lab.owned_ = !options.detached;
  return lab;
}

void Lab::cable_hosts() const {
  configure(*this, kBridge, "ip", bridge_links(keepers_));
  configure(*this, kBridge, "bridge", bridge_addresses(options_.hosts));
  for (int i = 0; i < options_.hosts; ++i) configure(*this, i, "ip", host_links(i, options_.hosts));
}

void Lab::reshape(const std::string& rate) {
  const Shape shape = shape_of(rate);
  const auto ports = bridge_ports(options_.hosts);
  configure(*this, kBridge, "ip", packet_sizes(ports, shape));
  configure(*this, kBridge, "tc", buckets(ports, shape));
  for (int i = 0; i < options_.hosts; ++i) {
    configure(*this, i, "ip", packet_sizes({"eth0"}, shape));
    configure(*this, i, "tc", buckets({"eth0"}, shape));
  }
  options_.rate = rate;
  save();
}

PortCounters Lab::counters(int host) const {
  const auto drops = [this](int where, const std::string& port) {
    return ask(*this, where, {"tc", "-s", "-j", "qdisc", "show", "dev", port}).value("drops", std::uint64_t{0});
  };
  const auto link = ask(*this, host, {"ip", "-s", "-j", "link", "show", "dev", "eth0"});
  const auto bytes = [&link](const char* direction) {
    return link.at("stats64").at(direction).at("bytes").get<std::uint64_t>();
  };
  return {.sent_bytes = bytes("tx"),
          .received_bytes = bytes("rx"),
          .sent_drops = drops(host, "eth0"),
          .received_drops = drops(kBridge, fmt::format("p{}", host))};
}

void Lab::stop() {
  owned_ = false;
  if (alive()) {
    std::vector<pid_t> holders = keepers_;
    holders.push_back(holder_);
    const std::vector<pid_t> inside = inhabitants(holders);
    for (const pid_t pid : inside) kill(pid, SIGTERM);
    if (!await_end(inside, std::chrono::seconds(1)))
      for (const pid_t pid : inhabitants(holders)) kill(pid, SIGKILL);
    kill(holder_, SIGKILL);
    await_end(holders, std::chrono::seconds(2));
  }
  std::error_code ignored;
  std::filesystem::remove(state_file_, ignored);
}

std::string Lab::address(int host) const { return host_address(host); }

std::vector<std::string> Lab::exec_prefix(int host) const {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  return {self, "lab", "exec", "--name", options_.name, host == kBridge ? "bridge" : fmt::format("{}", host)};
}

void Lab::enter(int host) const {
  if (host < kBridge || host >= options_.hosts)
    throw Misuse(
        fmt::format("no host {} in lab '{}'; allowed: 0 to {}, bridge", host, options_.name, options_.hosts - 1));
  enter_namespaces(host == kBridge ? holder_ : keepers_[static_cast<std::size_t>(host)]);
}

bool Lab::alive() const { return holder_ > 0 && !holder_started_.empty() && start_time(holder_) == holder_started_; }

void Lab::save() const {
  const nlohmann::json state{{"name", options_.name}, {"hosts", options_.hosts},    {"rate", options_.rate},
                             {"holder", holder_},     {"started", holder_started_}, {"keepers", keepers_},
                             {"owner", owner_}};
  launch::write_private_file(state_file_, text_of_json(state) + "\n");
}

std::optional<Lab> Lab::load(const std::string& path) {
  const auto state = nlohmann::json::parse(launch::process::read_file(path), nullptr, false);
  Lab lab;
  lab.state_file_ = path;
  try {
    lab.options_ = {.hosts = state.at("hosts"), .rate = state.at("rate"), .name = state.at("name"), .detached = true};
    lab.holder_ = state.at("holder");
    lab.holder_started_ = state.at("started");
    lab.keepers_ = state.at("keepers").get<std::vector<pid_t>>();
    lab.owner_ = state.at("owner");
  } catch (const nlohmann::json::exception&) {  // damaged: as good as none
  }
  if (lab.alive()) return lab;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return std::nullopt;
}

std::optional<Lab> Lab::find(const std::string& name) { return load(state_path(name)); }

std::vector<Lab> Lab::all() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(launch::runtime_folder())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("lab-") && name.ends_with(".json")) paths.push_back(entry.path());
  }
  std::vector<Lab> labs;
  for (const std::string& path : paths)
    if (auto lab = load(path)) labs.push_back(std::move(*lab));
  return labs;
}

}  // namespace syncopate::tools::lab
