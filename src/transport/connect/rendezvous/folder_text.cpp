// Contents of a rank's file in a folder rendezvous: "syncopate rendezvous 1", "size N", then the rank's text.
#include "transport/connect/rendezvous/folder_text.hpp"

#include <fmt/format.h>

#include <charconv>

#include "syncopate/error.hpp"

namespace syncopate::transport::connect::rendezvous {

namespace {
constexpr std::string_view kBefore = "syncopate rendezvous 1\nsize ";
}

std::string encode(const FolderText& mine) { return fmt::format("{}{}\n{}", kBefore, mine.size, mine.text); }

FolderText decode_folder_text(std::string_view bytes, const std::string& file) {
  const auto check = [&](bool fine, const char* what) {
    if (!fine) throw Corrupt(fmt::format("'{}' {}", file, what));
  };
  FolderText found;
  check(bytes.starts_with(kBefore), "is not a rendezvous file");
  bytes.remove_prefix(kBefore.size());
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), found.size);
  check(error == std::errc{} && end != bytes.data() + bytes.size() && *end == '\n', "is not a rendezvous file");
  found.text = bytes.substr(static_cast<std::size_t>(end - bytes.data()) + 1);
  check(found.text.size() <= kMaxText, "is too long");
  return found;
}

}  // namespace syncopate::transport::connect::rendezvous
