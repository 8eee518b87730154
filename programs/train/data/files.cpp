// Reads complete input files; a missing or unreadable file is an error, never skipped.
#include "data/files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "require.hpp"

namespace syncopate::train {
namespace fs = std::filesystem;

void append_file(const fs::path& file, std::vector<std::uint8_t>& into) {
  errno = 0;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
  if (size < 0) throw SystemFailure(fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
  const std::size_t before = into.size();
  into.resize(before + static_cast<std::size_t>(size));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(into.data() + before), size);
  if (in.gcount() != size) throw SystemFailure(fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
}

std::vector<fs::path> files_below(const fs::path& path) {
  std::error_code error;
  require(fs::exists(path, error), "--data {}: there is no such file or folder", path.string());
  if (fs::is_regular_file(path)) return {path};
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (it->is_regular_file(error) && !error) files.push_back(it->path());
  if (error) throw SystemFailure(fmt::format("cannot list {}: {}", path.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace syncopate::train
