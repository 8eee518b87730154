// Checks a text against the allowed values of a setting or a variable.
#include "syncopate/tooling/allowed_values.hpp"

#include <algorithm>
#include <charconv>
#include <ranges>

#include "base/require.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate {

namespace {

template <class Number>
bool is_between(std::string_view text, Number low, Number high) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= low && number <= high;
}

}  // namespace

void require_allowed(std::string_view name, std::string_view text, const AllowedValues& allowed,
                     std::string_view values) {
  const auto& [kind, low, high] = allowed;
  switch (kind) {
    case AllowedValues::Kind::any:
      return;
    case AllowedValues::Kind::listed:
      return base::require(std::ranges::any_of(std::views::split(values, std::string_view(", ")),
                                               [&](auto each) { return std::ranges::equal(each, text); }),
                           "{}={} is not allowed; allowed: {}", name, text, values);
    case AllowedValues::Kind::whole:
      return base::require(is_between(text, low, high), "{}={} is not a whole number from {} to {}", name, text, low,
                           high);
    case AllowedValues::Kind::real:
      return base::require(is_between(text, static_cast<double>(low), static_cast<double>(high)),
                           "{}={} is not allowed; allowed: {}", name, text, values);
    case AllowedValues::Kind::bytes:
      static_cast<void>(parse_bytes(text));
  }
}

}  // namespace syncopate
