// Servers: their addresses, their programs, and the environment of the job.
#include "launch/servers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "syncopate/error.hpp"

namespace syncopate::tools::launch {

namespace {
constexpr int kLabPort = 29'600;
}  // namespace

Servers::Servers(const JobOptions& options, const SecretFile& secret) : options_(options), secret_file_(secret.path()) {
  if (options.servers == 0) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  job_ = fmt::format("run-{}-{:x}", getpid(), now);
  environment_["SYNCOPATE_JOB"] = job_;
  if (!options.tls.empty()) environment_["SYNCOPATE_TLS"] = options.tls;
}

std::map<std::string, std::string> Servers::environment(int host) const {
  auto environment = environment_;
  std::string& addresses = environment["SYNCOPATE_SERVERS"];
  for (int server = 0; server < options_.servers; ++server)
    addresses +=
        fmt::format("{}{}", addresses.empty() ? "" : ",", host_of(server) == host ? name(server) : address(server));
  return environment;
}

int Servers::host_of(int server) const { return options_.lab == nullptr ? 0 : server % options_.lab->options().hosts; }

std::string Servers::name(int server) const { return fmt::format("@syncopate-{}-{}", job_, server); }

std::string Servers::address(int server) const {
  return fmt::format("{}:{}", options_.lab->address(host_of(server)),
                     kLabPort + server / options_.lab->options().hosts);
}

std::vector<std::string> Servers::addresses(int server) const {
  std::vector<std::string> addresses{name(server)};
  if (options_.lab != nullptr) addresses.push_back(address(server));
  return addresses;
}

std::vector<std::string> Servers::arguments(int server) const {
  std::vector<std::string> arguments{options_.server_program, "--index", fmt::format("{}", server), "--drain"};
  for (const std::string& address : addresses(server)) arguments.insert(arguments.end(), {"--address", address});
  if (!options_.config.empty())
    arguments.insert(arguments.end(), {"--config", std::filesystem::absolute(options_.config).string()});
  if (options_.replicas > 0) arguments.insert(arguments.end(), {"--replicas", "1"});
  if (!options_.snapshots.empty())
    arguments.insert(arguments.end(), {"--snapshots", std::filesystem::absolute(options_.snapshots).string(),
                                       "--snapshot-every", fmt::format("{}", options_.snapshot_every)});
  return arguments;
}

std::vector<process::Program> Servers::programs() const {
  std::vector<process::Program> programs;
  for (int server = 0; server < options_.servers; ++server) {
    process::Program program{
        .name = fmt::format("server {}", server), .attends = true, .restarts = options_.replicas > 0};
    program.argv = options_.own_servers ? options_.program : arguments(server);
    program.environment = options_.environment;
    const int host = host_of(server);
    for (const auto& [name, value] : environment(host)) program.environment[name] = value;
    program.environment["SYNCOPATE_SECRET_FILE"] = secret_file_;
    if (options_.own_servers) {
      program.environment["SYNCOPATE_SERVER"] = fmt::format("{}", server);
      program.environment["SYNCOPATE_LISTEN"] = fmt::format("{}", fmt::join(addresses(server), ","));
    }
    if (options_.lab != nullptr) {
      const auto prefix = options_.lab->exec_prefix(host);
      program.argv.insert(program.argv.begin(), prefix.begin(), prefix.end());
    }
    programs.push_back(std::move(program));
  }
  return programs;
}

}  // namespace syncopate::tools::launch
