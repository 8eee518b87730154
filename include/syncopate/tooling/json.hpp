// JSON as our commands write it.
#pragma once

#include <string>

namespace syncopate {

/// A value of nlohmann::json (or ordered_json) on one line, or indented. Bytes that are no UTF-8, as a path may have,
/// are replaced and no error.
template <class Json>
[[nodiscard]] std::string text_of_json(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace syncopate
