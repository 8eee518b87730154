// Servers: their addresses, their programs, and the environment of the job.
#include "launch/servers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

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
  std::string& addresses = environment_["SYNCOPATE_SERVERS"];
  for (int server = 0; server < options.servers; ++server)
    addresses += fmt::format("{}{}", addresses.empty() ? "" : ",", address(server));
}

std::string Servers::address(int server) const {
  if (options_.lab == nullptr) return fmt::format("@syncopate-{}-{}", job_, server);
  const int hosts = options_.lab->options().hosts;
  return fmt::format("{}:{}", options_.lab->address(server % hosts), kLabPort + server / hosts);
}

std::vector<process::Program> Servers::programs() const {
  std::vector<process::Program> programs;
  for (int server = 0; server < options_.servers; ++server) {
    process::Program program{.name = fmt::format("server {}", server), .attends = true};
    program.argv = {options_.server_program, "--index", fmt::format("{}", server), "--address",
                    address(server),         "--drain"};
    program.environment = options_.environment;
    for (const auto& [name, value] : environment_) program.environment[name] = value;
    program.environment["SYNCOPATE_SECRET_FILE"] = secret_file_;
    if (options_.lab != nullptr) {
      const auto prefix = options_.lab->exec_prefix(server % options_.lab->options().hosts);
      program.argv.insert(program.argv.begin(), prefix.begin(), prefix.end());
    }
    programs.push_back(std::move(program));
  }
  return programs;
}

}  // namespace syncopate::tools::launch
