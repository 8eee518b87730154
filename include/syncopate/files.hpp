// The files of a data set: those of a folder or a tar archive that are records, and the class of each.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::input {

/// Endings of names, such as ".jpeg", in any case; none: all names.
using Extensions = std::span<const std::string_view>;
inline constexpr std::array<std::string_view, 3> kPictureExtensions{".jpeg", ".jpg", ".png"};

struct StoredFile {
  std::string name;  ///< path below the folder, or in the archive
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;     ///< of its contents in the archive
  std::int64_t changed_ns = 0;  ///< modification time of a file of a folder
};

/// Whether a file of this path is a record: it has one of these extensions, and neither its name nor a folder in its
/// path is metadata of another program: a name that begins with '.' (also macOS' "._NAME"), or `__MACOSX`.
[[nodiscard]] bool is_record(std::string_view path, Extensions extensions = {});

/// The records below a folder, in byte order of names, folder by folder. Links are followed. Throws SystemFailure that
/// names the folder or the file.
[[nodiscard]] std::vector<StoredFile> files_in_folder(const std::string& folder, Extensions extensions = {});
/// The records in a tar archive that is not compressed, in its order. A hard link is a file with the bytes of its
/// target; symbolic links are left out. Throws SystemFailure; Corrupt that names archive, offset and reason: a damaged,
/// truncated or compressed archive, a sparse file, a hard link whose target is not in the archive before it.
[[nodiscard]] std::vector<StoredFile> files_in_tar(const std::string& archive, Extensions extensions = {});

/// The class of each file of a set, given their paths: its first folder below the root, as in torchvision's
/// ImageFolder. The root is the deepest folder in which every file lies in a folder; so neither a folder around all
/// classes nor folders within a class matter. Empty for a file that lies in no folder.
[[nodiscard]] std::vector<std::string> classes_of(std::span<const std::string_view> paths);

}  // namespace syncopate::input
