// Logging: the default sink.
#include "syncopate/log.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/env.hpp"
#include "base/named.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kNames[] = {"error", "warning", "info", "debug", "off"};
}

LogLevel log_level_named(std::string_view name) { return base::value_named<LogLevel>("log level", name, kNames); }

void Log::write(LogLevel wanted, std::string_view line) const {
  if (!shows(wanted)) return;
  if (sink) return sink(wanted, line);
  // One write per line, so that lines of several threads and processes stay whole.
  const std::string whole = fmt::format("syncopate {}: {}\n", kNames[static_cast<int>(wanted)], line);
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

Log log_from_environment() {
  Log log;
  if (const auto level = base::Environment::of_process().text("SYNCOPATE_LOG")) log.level = log_level_named(*level);
  return log;
}

}  // namespace syncopate
