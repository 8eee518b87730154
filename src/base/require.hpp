// require: throws Misuse for a broken contract; the message names the allowed values.
#pragma once

#include <fmt/format.h>

#include "syncopate/error.hpp"

namespace syncopate::base {

template <class... Args>
void require(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) [[unlikely]]
    throw Misuse(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace syncopate::base
