// Parsing and formatting of sizes, rates and times with units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate {

/// "4", "4KiB", "16MiB", "4MB", "1GiB" -> bytes. Throws Misuse with the allowed units.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view text);
/// "1000", "25M", "16Mi" -> a number. Throws Misuse with the allowed units.
[[nodiscard]] std::uint64_t parse_count(std::string_view text);
/// "200mbit", "1gbit", "2.5Gbit", "1e9" -> bits per second; "none" -> 0. Throws Misuse with the allowed units.
[[nodiscard]] double parse_rate(std::string_view text);
[[nodiscard]] std::string format_bytes(double bytes);      ///< "4 KiB", "36.9 MB" style binary units: "35.2 MiB"
[[nodiscard]] std::string format_seconds(double seconds);  ///< "12.3 us", "4.56 ms", "1.20 s"
/// A rate per second, without a unit: "3414", "41.2", "1.23", "0.19"; slow rates keep at least two digits.
[[nodiscard]] std::string format_rate(double per_second);

}  // namespace syncopate
