// Files of the cache: whole reads and writes, a folder's lock, and replacement by renaming.
#include "cache/disk/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "syncopate/error.hpp"

namespace syncopate::cache::disk {

namespace {

[[noreturn]] void fail(const char* what, const std::string& name, int error) {
  throw SystemFailure(fmt::format("cannot {} {}: {}", what, name, std::strerror(error)));
}

/// Opens `name` in the folder `at`; messages call it `path`. Does not follow a symbolic link.
int open_in(int at, const std::string& name, int flags, const std::string& path) {
  const int descriptor = ::openat(at, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  if (descriptor >= 0) return descriptor;
  const int error = errno;
  struct stat status {};
  if (::fstatat(at, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode))
    throw SystemFailure(fmt::format(
        "{} is a symbolic link, which the cache does not follow; remove it, or choose another folder (--cache-folder)",
        path));
  fail("open", path, error);
}

}  // namespace

File::File(const File& folder, const std::string& name, int flags)
    : descriptor_(open_in(folder.descriptor_, name, flags, folder.path_ + '/' + name)),
      path_(folder.path_ + '/' + name) {
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) return;
  ::close(std::exchange(descriptor_, -1));
  throw SystemFailure(
      fmt::format("{} is not a regular file; remove it, or choose another folder (--cache-folder)", path_));
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::uint64_t File::size() const noexcept {
  struct stat status {};
  return ::fstat(descriptor_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool File::read_at(std::uint64_t offset, base::Bytes into) const noexcept {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

int File::write_at(std::uint64_t offset, base::ConstBytes bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return 0;
}

void File::truncate(std::uint64_t size) noexcept {
  [[maybe_unused]] const int done = ::ftruncate(descriptor_, static_cast<off_t>(size));
}

bool File::lock() noexcept { return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0; }

File own_folder(const std::string& folder) {
  const std::filesystem::path path(folder), above = path.parent_path().empty() ? "." : path.parent_path();
  std::error_code error;
  std::filesystem::create_directories(above, error);
  if (error) fail("make the folder", above.string(), error.value());
  const int parent = ::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0) fail("open", above.string(), errno);
  const File shared(parent, above.string());
  const std::string name = path.filename().string();
  if (::mkdirat(parent, name.c_str(), 0755) != 0 && errno != EEXIST) fail("make the folder", folder, errno);
  File owned(open_in(parent, name, O_RDONLY | O_DIRECTORY, folder), folder);
  if (!owned.lock())
    throw SystemFailure(fmt::format("the cache folder {} is in use by another job; choose another folder", folder));
  return owned;
}

File replace_file(const File& folder, const std::string& name, base::ConstBytes bytes) {
  const std::string beside = name + ".writing";
  File file(folder, beside, O_RDWR | O_CREAT | O_TRUNC);
  if (const int error = file.write_at(0, bytes); error != 0) {
    ::unlinkat(folder.descriptor_, beside.c_str(), 0);
    fail("write", file.path_, error);
  }
  if (::renameat(folder.descriptor_, beside.c_str(), folder.descriptor_, name.c_str()) != 0)
    fail("replace", folder.path_ + '/' + name, errno);
  return file;
}

}  // namespace syncopate::cache::disk
