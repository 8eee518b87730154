// Arguments: checks of option values, and error texts, for syncopate, syncopate-train and syncopate-server.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "syncopate/tooling/allowed_values.hpp"

namespace syncopate::tools {

namespace detail {
/// Text as a whole number or a finite number within the limits. `high` is named in the text only where it is `named`.
struct Limits {
  std::int64_t low = 0;
  std::uint64_t high = std::numeric_limits<std::uint64_t>::max();
  bool named = true;
};
[[nodiscard]] CLI::Validator whole(Limits limits);
[[nodiscard]] CLI::Validator real(double low, double high);
}  // namespace detail

/// Numbers from `low` to `high`, both included: whole ones, or finite ones where Number is a floating-point type.
template <class Number>
[[nodiscard]] CLI::Validator between(Number low, Number high) {
  if constexpr (std::is_floating_point_v<Number>)
    return detail::real(low, high);
  else
    return detail::whole({static_cast<std::int64_t>(low), static_cast<std::uint64_t>(high)});
}
/// Whole numbers from `least` to the greatest `Number`, which is the type of the option's variable.
template <class Number>
[[nodiscard]] CLI::Validator at_least(Number least) {
  return detail::whole({static_cast<std::int64_t>(least), std::numeric_limits<Number>::max(), false});
}

/// Finite numbers above 0.
[[nodiscard]] CLI::Validator above_zero();
/// Finite numbers of 0 or more.
[[nodiscard]] CLI::Validator not_negative();
/// Accepts the texts of parse_bytes (`least` bytes or more), parse_count and parse_rate.
[[nodiscard]] CLI::Validator byte_size(std::uint64_t least = 0);
[[nodiscard]] CLI::Validator element_count();
[[nodiscard]] CLI::Validator bit_rate();
/// A comma-separated list whose every part `each` accepts.
[[nodiscard]] CLI::Validator list_of(const CLI::Validator& each);
/// A file that is there and can be read, or "-".
[[nodiscard]] CLI::Validator input_file();
/// One of these names; `what` they name stands in the error text.
[[nodiscard]] CLI::Validator one_of(std::string what, std::vector<std::string_view> names);
/// The allowed values of a setting; `values` are those of a list.
[[nodiscard]] CLI::Validator allowed(std::string_view name, const AllowedValues& allowed, std::string_view values);
/// The kind of these values in --help.
[[nodiscard]] std::string_view type_name(const AllowedValues& allowed);
/// The names of enumerators.
template <class Enum, std::size_t count>
[[nodiscard]] std::vector<std::string_view> names_of(const Enum (&enumerators)[count]) {
  std::vector<std::string_view> names;
  for (const Enum each : enumerators) names.push_back(name_of(each));
  return names;
}

/// `unknown_name` for names at hand as strings.
[[nodiscard]] std::string unknown_word(const std::string& what, const std::string& word,
                                       const std::vector<std::string>& allowed);
/// By name, without those that are not for people.
[[nodiscard]] std::vector<std::string> subcommands_of(const CLI::App& app);

/// The error text for `error`, which `app` threw while it parsed: for a word that is not an option or subcommand the
/// allowed ones or the nearest, for an option that is given twice or without a value its name, else CLI11's own text.
[[nodiscard]] std::string refusal_of(const CLI::App& app, const CLI::ParseError& error);

}  // namespace syncopate::tools
