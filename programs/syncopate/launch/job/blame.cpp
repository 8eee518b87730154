// Blame: a number behind fixed words.
#include "launch/job/blame.hpp"

#include <charconv>

namespace syncopate::tools::launch::job {

std::optional<int> blamed_in(std::string_view line) {
  constexpr std::string_view kWords = "syncopate error: the first to fail was rank ";
  if (!line.starts_with(kWords)) return std::nullopt;
  line.remove_prefix(kWords.size());
  int rank = -1;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), rank);
  return error == std::errc{} && end == line.data() + line.size() && rank >= 0 ? std::optional(rank) : std::nullopt;
}

}  // namespace syncopate::tools::launch::job
