// Whole numbers of JSON headers. A negative, fractional or too large value throws Corrupt.
#pragma once

#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>

#include "require.hpp"

namespace syncopate::train {

/// `what` names it in the error.
template <std::integral Number>
[[nodiscard]] Number whole_number(const nlohmann::ordered_json& value, std::string_view what) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Number>::max());
  require_intact(value.is_number_unsigned() && value.get<std::uint64_t>() <= kMost,
                 "its {} is not a whole number of at most {}", what, kMost);
  return value.get<Number>();
}

/// whole_number of the header's field `key`; throws nlohmann's exception if there is none.
template <std::integral Number>
void read(const nlohmann::ordered_json& header, const char* key, Number& into) {
  into = whole_number<Number>(header.at(key), key);
}

}  // namespace syncopate::train
