// JSON output of the commands.
#pragma once

#include <string>

namespace syncopate {

/// Formats a nlohmann::json (or ordered_json) on one line, or indented. Replaces bytes that are not UTF-8, as in a
/// path.
template <class Json>
[[nodiscard]] std::string text_of_json(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace syncopate
