// Parameters of codecs: parsing and checking.
#include "compress/parameters.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "base/require.hpp"

namespace syncopate::compress {

namespace {

std::vector<std::string> fields_of(std::string_view text) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    fields.emplace_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return fields;
}

double number_of(const Settings& settings, const std::string& field, const Parameter& parameter) {
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  const bool is_number = error == std::errc() && end == field.data() + field.size();
  const bool is_within = value > parameter.above && value <= parameter.most;
  const bool is_allowed = is_number && ((parameter.or_zero && value == 0) ||
                                        (is_within && (!parameter.whole || value == std::floor(value))));
  base::require(is_allowed, "codec '{}:{}': {} is '{}'; allowed: {}{} above {}, at most {}", settings.codec->name,
                settings.parameter, parameter.name, field, parameter.or_zero ? "0, and " : "",
                parameter.whole ? "whole numbers" : "numbers", parameter.above, parameter.most);
  return value;
}

}  // namespace

std::vector<double> parameters_of(const Settings& settings, std::span<const Parameter> parameters) {
  const std::vector<std::string> given = fields_of(settings.parameter);
  const std::vector<std::string> usual = fields_of(settings.codec->parameter);
  base::require(given.size() <= parameters.size(), "codec '{}:{}' has {} parameters; allowed: at most {}, as in {}:{}",
                settings.codec->name, settings.parameter, given.size(), parameters.size(), settings.codec->name,
                settings.codec->parameter);
  std::vector<double> values;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    values.push_back(number_of(settings, i < given.size() ? given[i] : usual.at(i), parameters[i]));
  return values;
}

}  // namespace syncopate::compress
