// Tar: the positions of the files in a tar archive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "input/file.hpp"
#include "syncopate/files.hpp"

namespace syncopate::input::tar {

/// An archive as bytes at offsets.
struct Archive {
  std::string name;  ///< for errors
  std::uint64_t bytes = 0;
  std::function<void(std::uint64_t offset, base::Bytes into)> read;  ///< within `bytes`
};

/// The files of an archive, in its order: ustar (POSIX.1-1988), with the long names and sizes of pax (POSIX.1-2001) and
/// GNU tar. Reads headers only. A hard link is a file with the bytes of its target; symbolic links, folders and devices
/// are skipped. Throws Corrupt that names archive, offset and reason: a header whose checksum is wrong, a size beyond
/// the archive, a name beyond 64 KiB, an archive that is truncated or compressed, sparse files, a hard link whose
/// target is not in the archive before it.
[[nodiscard]] std::vector<StoredFile> members_of(const Archive& archive);
/// Those of them that are records.
[[nodiscard]] std::vector<StoredFile> records_of(const File& file, Extensions extensions);

}  // namespace syncopate::input::tar
