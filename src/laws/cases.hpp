// Cases: the drawn cases of a check, and the law that one of them breaks.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <functional>

#include "syncopate/testing.hpp"

namespace syncopate::laws {

/// Runs `broken_in` with `cases` consecutive seeds until it returns a broken law. Its text is completed: `component`
/// names what is checked ("placement mine").
inline std::optional<BrokenLaw> first_broken(const std::string& component, std::uint64_t seed, std::uint64_t cases,
                                             const std::function<std::optional<BrokenLaw>(std::uint64_t)>& broken_in) {
  for (std::uint64_t drawn = seed; drawn < seed + cases; ++drawn) {
    std::optional<BrokenLaw> broken;
    try {
      broken = broken_in(drawn);
    } catch (const std::exception& error) {
      broken = {.law = "no exception", .text = fmt::format("it throws: {}", error.what())};
    }
    if (!broken) continue;
    broken->text = fmt::format("{} breaks the law \"{}\", seed {}: {}", component, broken->law, drawn, broken->text);
    broken->seed = drawn;
    return broken;
  }
  return std::nullopt;
}

}  // namespace syncopate::laws
