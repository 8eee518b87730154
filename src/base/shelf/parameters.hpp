// Parameters of shelf entries: parses the numbers after the colon of `name:0.01,4`, and checks their limits.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/named.hpp"
#include "syncopate/parameter.hpp"

namespace syncopate::base::shelf {

/// An entry's parameters as they were written.
struct Written {
  std::string_view what;  ///< the kind of entry, for errors: "codec"
  std::string_view name;
  std::string_view given;
  std::string_view usual;  ///< the entry's default
};

/// The numbers of `written.given`, separated by commas; missing ones at the end have the default. Throws Misuse that
/// names the parameter, its value and the allowed values.
[[nodiscard]] std::vector<double> numbers_of(const Written& written, std::span<const Parameter> parameters);

/// Throws Misuse unless the default gives each parameter an allowed value.
void require_usual(const Written& written, std::span<const Parameter> parameters);

/// Throws Misuse unless `text`, "name:parameter", gives a parameter to an entry that takes one.
void require_parameter(const Written& written, std::string_view text);

/// The entry of `name` or `name:parameter`, and the parameter: the entry's default if none is given. Throws Misuse that
/// lists the shelf, or names an entry without a parameter.
template <class Entry>
[[nodiscard]] std::pair<const Entry*, std::string> entry_and_parameter(std::string_view what, std::string_view text,
                                                                       std::span<const Entry* const> shelf) {
  const std::size_t colon = text.find(':');
  const Entry& entry = entry_named(what, text.substr(0, colon), shelf);
  if (colon == std::string_view::npos) return {&entry, std::string(entry.parameter)};
  const std::string_view given = text.substr(colon + 1);
  require_parameter({what, entry.name, given, entry.parameter}, text);
  return {&entry, std::string(given)};
}

}  // namespace syncopate::base::shelf
