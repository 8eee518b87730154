// Logging: the default sink.
#include "syncopate/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "base/env.hpp"
#include "base/named.hpp"
#include "syncopate/tooling/standard_streams.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kNames[] = {"error", "warning", "info", "debug", "off"};

std::atomic<std::uint64_t> lines_lost{0};

// Never blocks when there is no reader, because the calling thread may have to send heartbeats. One write per line, so
// that lines of several threads and processes do not mix.
void write_line(std::string_view level, std::string_view line) {
  const std::uint64_t lost = lines_lost.exchange(0);
  const std::string before =
      lost == 0 ? "" : fmt::format("syncopate warning: dropped {} lines because standard error was not read\n", lost);
  if (!write_at_once(STDERR_FILENO, fmt::format("{}syncopate {}: {}\n", before, level, line))) lines_lost += lost + 1;
}

}  // namespace

LogLevel log_level_named(std::string_view name) { return base::value_named<LogLevel>("log level", name, kNames); }

void Log::write(LogLevel wanted, std::string_view line) const {
  if (!shows(wanted)) return;
  if (sink) return sink(wanted, line);
  write_line(kNames[static_cast<int>(wanted)], line);
}

Log with_environment_level(Log log) {
  if (!log.level)
    log.level = log_level_named(base::Environment::of_process().text("SYNCOPATE_LOG").value_or("warning"));
  return log;
}

}  // namespace syncopate
