// The class of a file, by the folders in its path.
#include <algorithm>

#include "syncopate/files.hpp"

namespace syncopate::input {
namespace {

/// The folders of a path without "." and "..", also without those ".." that lead out of the set.
std::vector<std::string_view> folders_of(std::string_view path) {
  std::vector<std::string_view> folders;
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    const std::string_view folder = path.substr(0, slash);
    path.remove_prefix(slash + 1);
    if (folder == "..") {
      if (!folders.empty()) folders.pop_back();
    } else if (!folder.empty() && folder != ".") {
      folders.push_back(folder);
    }
  }
  return folders;
}

/// The number of folders of the root.
std::size_t depth_of_root(std::span<const std::string_view> paths) {
  const auto first = folders_of(paths.front());
  std::size_t shared = first.size(), least = first.size();
  for (const std::string_view path : paths) {
    const auto folders = folders_of(path);
    least = std::min(least, folders.size());
    const auto end = first.begin() + static_cast<std::ptrdiff_t>(shared);
    shared = static_cast<std::size_t>(std::mismatch(first.begin(), end, folders.begin(), folders.end()).first -
                                      first.begin());
  }
  return shared > 0 && shared == least ? shared - 1 : shared;  // a file of the shared folder itself: its class is this
}

}  // namespace

std::vector<std::string> classes_of(std::span<const std::string_view> paths) {
  std::vector<std::string> classes;
  if (paths.empty()) return classes;
  classes.reserve(paths.size());
  const std::size_t depth = depth_of_root(paths);
  for (const std::string_view path : paths) {
    const auto folders = folders_of(path);
    classes.emplace_back(folders.size() > depth ? folders[depth] : std::string_view());
  }
  return classes;
}

}  // namespace syncopate::input
