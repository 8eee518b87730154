// Unknown names: the one error message for every shelf, enumeration and command.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace syncopate {

/// The allowed name that `name` is probably a misspelling of: at most a third of its letters differ, or it begins with
/// `name`. Empty if there is none.
[[nodiscard]] std::string_view nearest_name(std::string_view name, std::span<const std::string_view> allowed);

/// "policy 'fusoin' is unknown; allowed: wfbp, single, fusion; did you mean 'fusion'?" Of more than 40 names only the
/// nearest, where there is one.
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view name,
                                       std::span<const std::string_view> allowed);

}  // namespace syncopate
