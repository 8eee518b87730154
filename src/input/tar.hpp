// Tar: the positions of the files in a tar archive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::input::tar {

struct Member {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;  ///< of its contents, in the archive
};

/// An archive as bytes at offsets.
struct Archive {
  std::string name;  ///< for errors
  std::uint64_t bytes = 0;
  std::function<void(std::uint64_t offset, base::Bytes into)> read;  ///< within `bytes`
};

/// The regular files of an archive, in its order: ustar (POSIX.1-1988), with the long names and sizes of pax
/// (POSIX.1-2001) and GNU tar. Reads headers only. Links, folders and devices are skipped. Throws Corrupt that names
/// archive, offset and reason: a header whose checksum is wrong, a size beyond the archive, a name beyond 64 KiB, an
/// archive that is cut short or compressed; sparse files.
[[nodiscard]] std::vector<Member> members_of(const Archive& archive);

}  // namespace syncopate::input::tar
