// What a rank's file holds in a rendezvous by folder: a line that says what it is, the job's size, and the rank's text.
#pragma once

#include <string>
#include <string_view>

#include "transport/connect/rendezvous/rendezvous.hpp"

namespace syncopate::transport::connect::rendezvous {

/// No file is longer.
inline constexpr std::size_t kMostFolderBytes = kMaxText + 64;

struct FolderText {
  int size = 1;  ///< ranks of the job, as its writer was told
  std::string text;
};

[[nodiscard]] std::string encode(const FolderText& mine);
/// Throws Corrupt that names `file`.
[[nodiscard]] FolderText decode_folder_text(std::string_view bytes, const std::string& file);

}  // namespace syncopate::transport::connect::rendezvous
