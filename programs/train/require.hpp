// require: throws Misuse for a broken contract; require_intact: throws Corrupt for a damaged file.
#pragma once

#include <fmt/format.h>

#include "syncopate/error.hpp"

namespace syncopate::train {

template <class... Args>
void require(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) [[unlikely]]
    throw Misuse(fmt::format(message, std::forward<Args>(args)...));
}

template <class... Args>
void require_intact(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) [[unlikely]]
    throw Corrupt(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace syncopate::train
