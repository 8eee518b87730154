// The library's version.
#pragma once

#include <string_view>

namespace syncopate {

[[nodiscard]] std::string_view version() noexcept;  ///< "0.1.0"

}  // namespace syncopate
