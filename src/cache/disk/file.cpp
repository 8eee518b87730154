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

}  // namespace

File::File(const std::string& name, int flags) : descriptor_(::open(name.c_str(), flags | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail("open", name, errno);
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
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("make the folder", folder, error.value());
  File owned(folder, O_RDONLY | O_DIRECTORY);
  if (!owned.lock())
    throw SystemFailure(fmt::format("the cache folder {} is in use by another job; give each its own", folder));
  return owned;
}

File replace_file(const std::string& name, base::ConstBytes bytes) {
  const std::string beside = name + ".writing";
  File file(beside, O_RDWR | O_CREAT | O_TRUNC);
  if (const int error = file.write_at(0, bytes); error != 0) {
    ::unlink(beside.c_str());
    fail("write", beside, error);
  }
  if (::rename(beside.c_str(), name.c_str()) != 0) fail("replace", name, errno);
  return file;
}

}  // namespace syncopate::cache::disk
