// Logging: a level and a place to write to, passed by value; the library holds no global logger.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace syncopate {

enum class LogLevel : std::uint8_t { error, warning, info, debug, off };

/// "error", "warning", "info", "debug" or "off"; throws Misuse otherwise.
[[nodiscard]] LogLevel log_level_named(std::string_view name);

/// Writes one line. Any thread may call it, including the one that sends heartbeats, so it must not block. The default
/// writes to stderr. It drops a line that cannot be written at once; the next line reports how many were dropped.
using LogSink = std::function<void(LogLevel, std::string_view)>;

struct Log {
  LogLevel level = LogLevel::warning;
  LogSink sink;  ///< empty: stderr

  [[nodiscard]] bool shows(LogLevel wanted) const noexcept { return level != LogLevel::off && wanted <= level; }
  void write(LogLevel wanted, std::string_view line) const;
};

/// stderr at the level named by SYNCOPATE_LOG (default: warning).
[[nodiscard]] Log log_from_environment();

}  // namespace syncopate
