// Access: the settings of a process's streams, from options and from the environment.
#include "server/process/access.hpp"

#include <random>

#include "base/crypto/secret.hpp"
#include "base/env.hpp"
#include "base/require.hpp"
#include "server/job/setup.hpp"
#include "transport/connect/launch.hpp"

namespace syncopate::server {

std::uint64_t drawn_process() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;  // 0 means unknown
}

streams::EndOptions end_options(const JobAccess& access, const streams::Identity& self, const Log& log) {
  base::require(self.index < kMostWorkers, "{}; allowed: an index below {}", text_of(self), kMostWorkers);
  return {.self = self,
          .job = access.job,
          .secret = base::crypto::read_secret(access.secret_file),
          .tls = access.tls,
          .silence = access.silence,
          .spin = transport::connect::spin_of(base::Environment::of_process()),
          .log = log};
}

}  // namespace syncopate::server

namespace syncopate {

namespace {

using base::Environment;

JobAccess access_from(const Environment& environment) {
  JobAccess access;
  const auto take = [&](const char* name, std::string& into) {
    if (const auto text = environment.text(name)) into = *text;
  };
  take("SYNCOPATE_JOB", access.job);
  take("SYNCOPATE_SECRET_FILE", access.secret_file);
  access.tls = tls_named(environment.text("SYNCOPATE_TLS").value_or("auto"));
  access.silence = std::chrono::milliseconds(
      environment.integer("SYNCOPATE_SILENCE_MS", 100, 86'400'000).value_or(access.silence.count()));
  return access;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    words.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

}  // namespace

JobAccess access_from_environment() { return access_from(Environment::of_process()); }

std::optional<ServerOptions> server_from_environment() {
  const Environment environment = Environment::of_process();
  const auto index = environment.integer("SYNCOPATE_SERVER", 0, static_cast<long>(server::kMostWorkers) - 1);
  if (!index) return std::nullopt;
  return ServerOptions{.addresses = split(environment.text("SYNCOPATE_LISTEN").value_or("")),
                       .index = static_cast<std::size_t>(*index),
                       .access = access_from(environment)};
}

WorkerOptions worker_from_environment() {
  const Environment environment = Environment::of_process();
  WorkerOptions options;
  options.access = access_from(environment);
  options.servers = split(environment.text("SYNCOPATE_SERVERS").value_or(""));
  base::require(!options.servers.empty(),
                "SYNCOPATE_SERVERS is not set: no server is known; allowed: addresses, separated by commas, or "
                "`syncopate run --servers K`, which starts K of them");
  const auto most = static_cast<long>(server::kMostWorkers);
  options.workers = static_cast<std::size_t>(environment.integer("SYNCOPATE_SIZE", 1, most).value_or(1));
  options.worker = static_cast<std::size_t>(environment.integer("SYNCOPATE_RANK", 0, most - 1).value_or(0));
  options.timeout = std::chrono::milliseconds(
      environment.integer("SYNCOPATE_TIMEOUT_MS", 1, 86'400'000).value_or(options.timeout.count()));
  return options;
}

}  // namespace syncopate
