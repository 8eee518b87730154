// Arguments: what a value may be, and what is said of one that may not; the same words for every command.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::tools {

namespace detail {
/// A check whose refusal is "'VALUE' is not allowed; allowed: `allowed`", which also stands in the help.
[[nodiscard]] CLI::Validator check(std::string allowed, std::function<bool(const std::string&)> accepts);
}  // namespace detail

/// Numbers from `low` to `high`, both among them.
template <class Number>
[[nodiscard]] CLI::Validator between(Number low, Number high) {
  return detail::check(fmt::format("{} to {}", low, high), [low, high](const std::string& text) {
    Number value{};
    return CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
  });
}

/// Finite numbers above 0.
[[nodiscard]] CLI::Validator above_zero();
/// Whole numbers of at least `least`.
[[nodiscard]] CLI::Validator at_least(int least);
/// A file that is there and can be read, or "-".
[[nodiscard]] CLI::Validator input_file();
/// One of these names; `what` they name stands in the refusal.
[[nodiscard]] CLI::Validator one_of(std::string what, std::vector<std::string_view> names);

/// `unknown_name` for names at hand as strings.
[[nodiscard]] std::string unknown_word(const std::string& what, const std::string& word,
                                       const std::vector<std::string>& allowed);
/// By name, without those that are not for people.
[[nodiscard]] std::vector<std::string> subcommands_of(const CLI::App& app);

/// What `error`, thrown by `app` while it parsed, tells the user: of a word that is no option or subcommand which there
/// are and which is the nearest, else CLI11's own words.
[[nodiscard]] std::string refusal_of(const CLI::App& app, const CLI::ParseError& error);

}  // namespace syncopate::tools
