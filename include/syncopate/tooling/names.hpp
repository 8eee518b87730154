// Names that do not exist: the one way in which every shelf, enumeration and command says so.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace syncopate {

/// The allowed name that a typing mistake may have meant: a third of its letters differ at most, or it begins with
/// `name`. Empty where none does.
[[nodiscard]] std::string_view nearest_name(std::string_view name, std::span<const std::string_view> allowed);

/// "policy 'fusoin' is unknown; allowed: wfbp, single, fusion; did you mean 'fusion'?"
[[nodiscard]] std::string unknown_name(std::string_view what, std::string_view name,
                                       std::span<const std::string_view> allowed);

}  // namespace syncopate
