// The environment of the process, read once into a value that is checked and passed down, and its processors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate::base {

class Environment final {
 public:
  Environment() = default;
  /// Throws Misuse for a variable of `environment_variables()` with a value that is not allowed.
  explicit Environment(std::map<std::string, std::string, std::less<>> values);
  /// The process's environment as it is now.
  [[nodiscard]] static Environment of_process();

  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;  ///< nullopt if unset or empty
  /// nullopt if unset; throws Misuse that names the variable if it is not an integer in [low, high]. `low` is not
  /// negative.
  [[nodiscard]] std::optional<long> integer(std::string_view name, long low, long high) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// Number of processors that this thread may run on; at least 1.
[[nodiscard]] int processors() noexcept;

}  // namespace syncopate::base
