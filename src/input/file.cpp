// Reads files at offsets; errors name the path and the reason.
#include "input/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::input {
namespace {

[[noreturn]] void fail(const char* what, const std::string& path, int error) {
  throw SystemFailure(fmt::format("cannot {} {}: {}", what, path, std::strerror(error)));
}

}  // namespace

File::File(std::string path) : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail("open", path_, errno);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    const int error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    ::close(descriptor_);
    fail("read", path_, error);
  }
  bytes_ = static_cast<std::uint64_t>(status.st_size);
  changed_ns_ = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      changed_ns_(other.changed_ns_) {}

void File::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path_, errno);
    if (got == 0) throw Corrupt(fmt::format("{} ends at offset {}; it was longer when it was opened", path_, offset));
    offset += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace syncopate::input
