// The allowed values of a setting or an environment variable, as far as they can be checked without its use.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace syncopate {

struct AllowedValues {
  static constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

  enum class Kind : std::uint8_t { any, listed, whole, real, bytes } kind = Kind::any;
  std::uint64_t low = 0, high = kMost;  ///< of a number, both included

  static constexpr AllowedValues any() { return {}; }
  static constexpr AllowedValues listed() { return {.kind = Kind::listed}; }  ///< the values for people are a list
  static constexpr AllowedValues whole(std::uint64_t low, std::uint64_t high = kMost) {
    return {.kind = Kind::whole, .low = low, .high = high};
  }
  static constexpr AllowedValues real(std::uint64_t low, std::uint64_t high = kMost) {
    return {.kind = Kind::real, .low = low, .high = high};
  }
  static constexpr AllowedValues bytes() { return {.kind = Kind::bytes}; }  ///< a text of parse_bytes
};

/// Throws Misuse with `name` and `values`, the allowed values for people, if `text` is not allowed.
void require_allowed(std::string_view name, std::string_view text, const AllowedValues& allowed,
                     std::string_view values);

}  // namespace syncopate
