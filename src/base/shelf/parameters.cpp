// Parameters of shelf entries: parsing and checking.
#include "base/shelf/parameters.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/require.hpp"

namespace syncopate::base::shelf {

namespace {

std::vector<std::string> fields_of(std::string_view text) {
  std::vector<std::string> fields;
  if (text.empty()) return fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    fields.emplace_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return fields;
}

double index_of(const Written& written, const std::string& field, const Parameter& parameter) {
  const auto found = std::ranges::find(parameter.names, field);
  require(found != parameter.names.end(), "{} '{}:{}': {} is '{}'; allowed: {}", written.what, written.name,
          written.given, parameter.name, field, fmt::join(parameter.names, ", "));
  return static_cast<double>(found - parameter.names.begin());
}

double number_of(const Written& written, const std::string& field, const Parameter& parameter) {
  if (!parameter.names.empty()) return index_of(written, field, parameter);
  constexpr std::string_view kAuto = "auto:";
  if (parameter.or_auto && field.starts_with(kAuto))
    return -number_of(written, field.substr(kAuto.size()), {.name = "density", .most = 1});
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  const bool is_number = error == std::errc() && end == field.data() + field.size();
  const bool is_within = value > parameter.above && value <= parameter.most;
  const bool is_allowed = is_number && ((parameter.or_zero && value == 0) ||
                                        (is_within && (!parameter.whole || value == std::floor(value))));
  require(is_allowed, "{} '{}:{}': {} is '{}'; allowed: {}{} above {}, at most {}{}", written.what, written.name,
          written.given, parameter.name, field, parameter.or_zero ? "0, and " : "",
          parameter.whole ? "whole numbers" : "numbers", parameter.above, parameter.most,
          parameter.or_auto ? ", or auto:DENSITY" : "");
  return value;
}

}  // namespace

std::vector<double> numbers_of(const Written& written, std::span<const Parameter> parameters) {
  const std::vector<std::string> given = fields_of(written.given);
  const std::vector<std::string> usual = fields_of(written.usual);
  require(given.size() <= parameters.size(), "{} '{}:{}' has {} parameters; allowed: at most {}, as in {}:{}",
          written.what, written.name, written.given, given.size(), parameters.size(), written.name, written.usual);
  std::vector<double> values;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    values.push_back(number_of(written, i < given.size() ? given[i] : usual.at(i), parameters[i]));
  return values;
}

void require_usual(const Written& written, std::span<const Parameter> parameters) {
  const std::size_t values = fields_of(written.usual).size();
  require(parameters.empty() || values == parameters.size(),
          "the default '{}' of {} {} has {} values; allowed: one for each of its {} parameters", written.usual,
          written.what, written.name, values, parameters.size());
  static_cast<void>(numbers_of(written, parameters));
}

void require_parameter(const Written& written, std::string_view text) {
  require(!written.usual.empty(), "{} '{}': {} takes no parameter; allowed: {}", written.what, text, written.name,
          written.name);
  require(!written.given.empty(), "{} '{}' has an empty parameter; allowed: {}, or {}:{} and the like", written.what,
          text, written.name, written.name, written.usual);
}

}  // namespace syncopate::base::shelf
