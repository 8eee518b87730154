// Blame: the line that names the rank, and the descriptor that it is written to.
#include "syncopate/tooling/blame.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>

#include "base/require.hpp"
#include "syncopate/tooling/standard_streams.hpp"

namespace syncopate {

namespace {

constexpr std::string_view kWords = "syncopate: first failed rank ";

/// The number that all of `text` is; nullopt if it is none.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

BlameDescriptor BlameDescriptor::of(int number) noexcept {
  struct stat about {};
  return {number, ::fstat(number, &about) == 0 ? std::uint64_t{about.st_ino} : 0};
}

BlameDescriptor BlameDescriptor::parse(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto number = number_in<int>(text.substr(0, colon));
  const auto inode = number_in<std::uint64_t>(text.substr(std::min(colon + 1, text.size())));
  base::require(number && *number >= 0 && inode, "SYNCOPATE_BLAME_FD={}; allowed: NUMBER:INODE of an open descriptor",
                text);
  return {*number, *inode};
}

std::string BlameDescriptor::text() const { return fmt::format("{}:{}", number, inode); }

void BlameDescriptor::report(int rank) const noexcept {
  struct stat about {};
  if (::fstat(number, &about) != 0 || about.st_ino != inode) return;
  (void)write_at_once(number, fmt::format("{}{}\n", kWords, rank));
}

std::optional<int> blamed_in(std::string_view line) {
  if (!line.starts_with(kWords)) return std::nullopt;
  const auto rank = number_in<int>(line.substr(kWords.size()));
  return rank && *rank >= 0 ? rank : std::nullopt;
}

}  // namespace syncopate
