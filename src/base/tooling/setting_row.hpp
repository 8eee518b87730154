// A row of a table of settings: a member of a struct, or a member of a member, as text.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

#include "syncopate/tooling/settings.hpp"

namespace syncopate::base {

template <class Value>
std::string setting_text(const Value& value) {
  if constexpr (std::same_as<Value, bool>)
    return value ? "true" : "false";
  else
    return fmt::format("{}", value);
}

/// `text` is allowed.
template <class Value>
void read_setting(std::string_view text, Value& value) {
  if constexpr (std::same_as<Value, bool>)
    value = text == "true";
  else if constexpr (std::same_as<Value, std::string>)
    value = text;
  else
    std::from_chars(text.data(), text.data() + text.size(), value);
}

/// The setting of Options that `kPath` leads to: texts and numbers.
template <class Options, auto... kPath>
constexpr Setting<Options> setting_row(std::string_view name, std::string_view flag, AllowedValues allowed,
                                       std::string_view values, std::string_view meaning) {
  return {name,
          flag,
          allowed,
          values,
          meaning,
          [](const Options& options) { return setting_text((options.*....*kPath)); },
          [](Options& options, std::string_view text) { read_setting(text, (options.*....*kPath)); }};
}

}  // namespace syncopate::base
