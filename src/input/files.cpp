// Which files of a folder or an archive are records.
#include "syncopate/files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "input/file.hpp"
#include "input/tar.hpp"
#include "syncopate/error.hpp"

namespace syncopate::input {
namespace {

namespace fs = std::filesystem;

bool is_hidden(std::string_view part) {
  return part == "__MACOSX" || (part.starts_with('.') && part != "." && part != "..");
}

bool ends_in(std::string_view path, std::string_view extension) {
  if (path.size() < extension.size()) return false;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(path.substr(path.size() - extension.size()), extension, {}, lower, lower);
}

class Folder final {
 public:
  Folder(const std::string& path, Extensions extensions) : path_(path), extensions_(extensions) { list(""); }

  std::vector<StoredFile> files;

 private:
  /// `below`: a folder of this folder, "" or "NAME/".
  void list(const std::string& below) {
    std::vector<std::pair<std::string, bool>> entries;  // name, whether it is a folder
    std::error_code error;
    for (fs::directory_iterator it(path_ / below, error), end; !error && it != end; it.increment(error)) {
      std::string name = it->path().filename().string();
      std::error_code ignored;
      const bool is_folder = it->is_directory(ignored);
      if (is_record(name, is_folder ? Extensions() : extensions_)) entries.emplace_back(std::move(name), is_folder);
    }
    if (error) throw SystemFailure(fmt::format("cannot list {}: {}", (path_ / below).string(), error.message()));
    std::ranges::sort(entries);
    for (const auto& [name, is_folder] : entries)
      if (is_folder)
        list(below + name + '/');
      else
        add(below + name);
  }
  void add(std::string name) {
    struct stat status {};
    if (::stat((path_ / name).c_str(), &status) != 0)
      throw SystemFailure(fmt::format("cannot read {}: {}", (path_ / name).string(), std::strerror(errno)));
    if (!S_ISREG(status.st_mode)) return;
    files.push_back({.name = std::move(name),
                     .bytes = static_cast<std::uint64_t>(status.st_size),
                     .changed_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec});
  }

  const fs::path path_;
  const Extensions extensions_;
};

}  // namespace

bool is_record(std::string_view path, Extensions extensions) {
  if (!extensions.empty() && std::ranges::none_of(extensions, [&](auto one) { return ends_in(path, one); }))
    return false;
  for (std::size_t slash = 0; slash != std::string_view::npos; path.remove_prefix(std::min(slash + 1, path.size()))) {
    slash = path.find('/');
    if (is_hidden(path.substr(0, slash))) return false;
  }
  return true;
}

std::vector<StoredFile> files_in_folder(const std::string& folder, Extensions extensions) {
  return std::move(Folder(folder, extensions).files);
}

std::vector<StoredFile> files_in_tar(const std::string& archive, Extensions extensions) {
  return tar::records_of(File(archive), extensions);
}

}  // namespace syncopate::input
