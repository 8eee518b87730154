// Arguments: checks of values, and the error texts for words that are not an option or a subcommand.
#include "arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <ranges>
#include <sstream>

#include "syncopate/error.hpp"
#include "syncopate/tooling/names.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools {

namespace {

/// The subcommands that were entered, outermost first.
std::vector<const CLI::App*> entered(const CLI::App& app) {
  std::vector<const CLI::App*> path{&app};
  while (!path.back()->get_subcommands().empty()) path.push_back(path.back()->get_subcommands().front());
  return path;
}

std::string name_of(const std::vector<const CLI::App*>& path) {
  std::vector<std::string> names;
  for (const CLI::App* app : path) names.push_back(app->get_name());
  return fmt::format("`{}`", fmt::join(names, " "));
}

std::vector<std::string> options_of(const std::vector<const CLI::App*>& path) {
  std::vector<std::string> names;
  for (const CLI::Option* option : path.back()->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// "; did you mean '-n'?" for a word of one or two letters that begin with a short option's, else empty: --np, --n.
std::string short_option_meant(const CLI::App& app, std::string_view word) {
  const std::string_view letters = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_snames())
      if (letters.size() <= 2 && letters.starts_with(name)) return fmt::format("; did you mean '-{}'?", name);
  return {};
}

/// How often the option of that name was given.
std::size_t occurrences(const CLI::App& app, const std::string& name) {
  for (const CLI::App* each : entered(app))
    for (const CLI::Option* option : each->get_options())
      if (option->get_name() == name && option->count() > 0) return option->count();
  return 0;
}

/// The error for the first word that no option or command takes; empty if there is none.
std::string refusal_of_rest(const CLI::App& app) {
  const std::vector<const CLI::App*> path = entered(app);
  const std::vector<std::string> subcommands = subcommands_of(*path.back());
  for (const std::string& word : app.remaining(true)) {
    const std::string name = word.substr(0, word.find('='));
    if (word.starts_with('-'))
      return unknown_word("option of " + name_of(path), name, options_of(path)) +
             short_option_meant(*path.back(), name);
    if (subcommands.empty()) return fmt::format("{} takes no further word: '{}'", name_of(path), word);
    return unknown_word("subcommand of " + name_of(path), word, subcommands);
  }
  return {};
}

}  // namespace

namespace {

/// The text without one leading '+'.
std::string_view unsigned_text(const std::string& text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  return digits;
}

template <class Number>
std::optional<Number> number_of(std::string_view text, std::errc& error) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  error = failure;
  return failure == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<double> finite_number(const std::string& text) {
  std::errc error{};
  const auto value = number_of<double>(unsigned_text(text), error);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// A check whose error text is "'VALUE' is not allowed; allowed: `allowed`", which also stands in the help.
CLI::Validator checked(std::string allowed, std::function<bool(double)> accepts) {
  return {[allowed, accepts = std::move(accepts)](std::string& text) {
            const std::optional<double> value = finite_number(text);
            return value && accepts(*value) ? std::string()
                                            : fmt::format("'{}' is not allowed; allowed: {}", text, allowed);
          },
          allowed};
}

template <class Parse>
CLI::Validator parsed_by(Parse parse) {
  return {[parse](std::string& text) {
            try {
              static_cast<void>(parse(text));
              return std::string();
            } catch (const Misuse& refusal) {
              return std::string(refusal.what());
            }
          },
          ""};
}

}  // namespace

/// CLI11 reads "010" as 8 and "0x10" as 16: it gets the decimal digits of what is read here.
CLI::Validator detail::whole(Limits limits) {
  const auto [low, high, named] = limits;
  const std::string range = fmt::format("{} to {}", low, high),
                    allowed = named ? range : fmt::format("{} or more", low);
  return {[=](std::string& text) {
            std::errc error{};
            const bool negative = text.starts_with('-');
            const auto below = negative ? number_of<std::int64_t>(text, error) : std::nullopt;
            const auto value = negative ? std::nullopt : number_of<std::uint64_t>(unsigned_text(text), error);
            const bool above = error == std::errc::result_out_of_range && !negative;
            if (above || (value && *value > high)) return fmt::format("'{}' is not allowed; allowed: {}", text, range);
            if (value ? low >= 0 && *value < static_cast<std::uint64_t>(low) : !below || *below < low) {
              const bool fraction = !value && !below && finite_number(text);
              return fmt::format("'{}' is {}; allowed: {}", text, fraction ? "not a whole number" : "not allowed",
                                 allowed);
            }
            text = value ? fmt::format("{}", *value) : fmt::format("{}", *below);
            return std::string();
          },
          allowed};
}

CLI::Validator detail::real(double low, double high) {
  return checked(fmt::format("{} to {}", low, high), [=](double value) { return value >= low && value <= high; });
}

CLI::Validator above_zero() {
  return checked("more than 0", [](double value) { return value > 0; });
}

CLI::Validator not_negative() {
  return checked("0 or more", [](double value) { return value >= 0; });
}

CLI::Validator byte_size(std::uint64_t least) {
  return parsed_by([least](const std::string& text) {
    if (parse_bytes(text) < least) throw Misuse(fmt::format("'{}' is not allowed; allowed: {} B or more", text, least));
  });
}
CLI::Validator element_count() { return parsed_by(parse_count); }
CLI::Validator bit_rate() { return parsed_by(parse_rate); }

CLI::Validator list_of(const CLI::Validator& each) {
  return {[each](std::string& text) {
            std::istringstream parts(text);
            for (std::string part; std::getline(parts, part, ',');)
              if (std::string refusal = each(part); !part.empty() && !refusal.empty()) return refusal;
            return std::string();
          },
          each.get_description()};
}

CLI::Validator input_file() {
  return {[](std::string& file) {
            return file == "-" || access(file.c_str(), R_OK) == 0
                       ? std::string()
                       : fmt::format("cannot read {}: {}; allowed: a file that exists", file, std::strerror(errno));
          },
          ""};
}

CLI::Validator one_of(std::string what, std::vector<std::string_view> names) {
  const std::string allowed = fmt::format("{}", fmt::join(names, ", "));
  return {[what = std::move(what), names = std::move(names)](std::string& text) {
            return std::ranges::find(names, text) != names.end() ? std::string() : unknown_name(what, text, names);
          },
          allowed};
}

CLI::Validator allowed(std::string_view name, const AllowedValues& allowed, std::string_view values) {
  using Kind = AllowedValues::Kind;
  switch (allowed.kind) {
    case Kind::listed: {
      std::vector<std::string_view> names;
      for (const auto each : std::views::split(values, std::string_view(", ")))
        names.emplace_back(each.begin(), each.end());
      return one_of(std::string(name.substr(2)), std::move(names));
    }
    case Kind::whole:
      return detail::whole({static_cast<std::int64_t>(allowed.low), allowed.high, false});
    case Kind::real:
      return allowed.high == AllowedValues::kMost
                 ? not_negative()
                 : detail::real(static_cast<double>(allowed.low), static_cast<double>(allowed.high));
    case Kind::bytes:
      return byte_size();
    default:
      return {};
  }
}

std::string_view type_name(const AllowedValues& allowed) {
  using Kind = AllowedValues::Kind;
  switch (allowed.kind) {
    case Kind::whole:
      return "INT";
    case Kind::real:
      return "FLOAT";
    case Kind::bytes:
      return "BYTES";
    default:
      return "TEXT";
  }
}

std::string unknown_word(const std::string& what, const std::string& word, const std::vector<std::string>& allowed) {
  return unknown_name(what, word, std::vector<std::string_view>(allowed.begin(), allowed.end()));
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* child : app.get_subcommands([](const CLI::App* any) { return !any->get_group().empty(); }))
    names.push_back(child->get_name());
  return names;
}

std::string refusal_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what(), name = text.substr(0, text.find(':'));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::size_t given = occurrences(app, name);
    if (text.ends_with(" missing")) return fmt::format("{} needs a value", name);
    return given < 2 ? text
                     : fmt::format("{} is given {}; give it once", name,
                                   given == 2 ? "twice" : fmt::format("{} times", given));
  }
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!is_extra && !is_missing) return text;
  const std::string refusal = refusal_of_rest(app);
  if (!refusal.empty()) return refusal;
  const std::vector<const CLI::App*> path = entered(app);
  if (text != "A subcommand is required") return text;
  return fmt::format("{} needs a subcommand; allowed: {}", name_of(path),
                     fmt::join(subcommands_of(*path.back()), ", "));
}

}  // namespace syncopate::tools
