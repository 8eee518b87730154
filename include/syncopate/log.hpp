// Logging: a level and a place to write to, passed by value; the library holds no global logger.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace syncopate {

enum class LogLevel : std::uint8_t { error, warning, info, debug, off };

/// "error", "warning", "info", "debug" or "off"; throws Misuse otherwise.
[[nodiscard]] LogLevel log_level_named(std::string_view name);

/// Writes one line. Any thread may call it, including the one that sends heartbeats, so it must not block. The default
/// writes to stderr. It drops a line that cannot be written at once; the next line reports how many were dropped.
using LogSink = std::function<void(LogLevel, std::string_view)>;

struct Log {
  /// Unset: that of SYNCOPATE_LOG, which a group, a cache, a server and a worker read when they start; else warning.
  std::optional<LogLevel> level;
  LogSink sink;  ///< empty: stderr

  [[nodiscard]] bool shows(LogLevel wanted) const noexcept {
    const LogLevel most = level.value_or(LogLevel::warning);
    return most != LogLevel::off && wanted <= most;
  }
  void write(LogLevel wanted, std::string_view line) const;
};

/// The same log; one without a level gets that of SYNCOPATE_LOG, or warning. Throws Misuse, naming the allowed levels.
[[nodiscard]] Log with_environment_level(Log log);

}  // namespace syncopate
