// Names of workers, and the options of a stream's end.
#include "server/process/access.hpp"

#include <fmt/format.h>

#include <charconv>
#include <random>

#include "base/crypto/secret.hpp"
#include "base/env.hpp"
#include "base/require.hpp"
#include "server/rpc/certificates.hpp"
#include "server/table/setup.hpp"

namespace syncopate::server {

namespace {
constexpr std::string_view kWorker = "worker ";
}  // namespace

std::string name_of_worker(std::size_t worker) { return fmt::format("{}{}", kWorker, worker); }

std::string name_of_server(std::size_t server) { return fmt::format("server {}", server); }

std::optional<std::size_t> worker_named(std::string_view name) noexcept {
  if (!name.starts_with(kWorker)) return std::nullopt;
  name.remove_prefix(kWorker.size());
  std::size_t worker = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), worker);
  if (error != std::errc{} || end != name.data() + name.size() || worker >= kMostWorkers) return std::nullopt;
  return worker;
}

std::uint64_t drawn_process() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;  // 0 means unknown
}

rpc::EndOptions end_options(const JobAccess& access, std::string identity, const Log& log) {
  const bool some = !access.authority.empty() || !access.certificate.empty() || !access.key.empty();
  const bool all = !access.authority.empty() && !access.certificate.empty() && !access.key.empty();
  base::require(!some || all, "TLS takes three files: authority, certificate and key; given are '{}', '{}' and '{}'",
                access.authority, access.certificate, access.key);
  rpc::EndOptions options{.identity = std::move(identity),
                          .job = access.job,
                          .secret = base::crypto::read_secret(access.secret_file),
                          .silence = access.silence,
                          .log = log};
  if (all) options.certificates = {access.authority, access.certificate, access.key};
  return options;
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
  take("SYNCOPATE_TLS_AUTHORITY", access.authority);
  take("SYNCOPATE_TLS_CERTIFICATE", access.certificate);
  take("SYNCOPATE_TLS_KEY", access.key);
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

void make_certificates(const std::string& folder, const std::vector<CertifiedHost>& hosts, int days) {
  server::rpc::make_certificates(folder, hosts, days);
}

JobAccess access_from_environment() { return access_from(Environment::of_process()); }

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
