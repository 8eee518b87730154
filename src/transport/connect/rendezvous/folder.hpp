// Contents of a rank's file in a folder rendezvous: a line with the format's name, the job's size, and the rank's text.
#pragma once

#include <string>
#include <string_view>

#include "transport/connect/rendezvous/rendezvous.hpp"

namespace syncopate::transport::connect::rendezvous {

/// Limit of a file's length.
inline constexpr std::size_t kMostFolderBytes = kMaxText + 64;

struct FolderText {
  int size = 1;  ///< ranks of the job, by the writer's settings
  std::string text;
};

[[nodiscard]] std::string encode(const FolderText& mine);
/// Throws Corrupt naming `file`.
[[nodiscard]] FolderText decode_folder_text(std::string_view bytes, const std::string& file);

}  // namespace syncopate::transport::connect::rendezvous
