// Sealed memory: memfd and its seals.
#include "transport/shm/sealed.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::transport::shm {

namespace {
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
}

void refuse(const char* what) {
  throw SystemFailure(fmt::format("cannot {} shared memory: {}", what, std::strerror(errno)));
}

socket::Descriptor make_sealed(std::uint64_t bytes) {
  rlimit limit{};
  // A write beyond it would kill the process by a signal.
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    throw SystemFailure(
        fmt::format("cannot make shared memory of {} bytes: files may have {} at most (ulimit -f); raise that, or use "
                    "transport tcp",
                    bytes, limit.rlim_cur));
  socket::Descriptor memory(::memfd_create("syncopate", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.number(), static_cast<off_t>(bytes)) != 0) refuse("make");
  if (::fcntl(memory.number(), F_ADD_SEALS, kSeals) != 0) refuse("seal");
  return memory;
}

std::uint64_t sealed_bytes(const socket::Descriptor& memory) {
  const int seals = ::fcntl(memory.number(), F_GET_SEALS);
  if (seals != kSeals) throw Corrupt(fmt::format("shared memory has seals {:#x} instead of {:#x}", seals, kSeals));
  struct stat state {};
  if (::fstat(memory.number(), &state) != 0) refuse("measure");
  return static_cast<std::uint64_t>(state.st_size);
}

}  // namespace syncopate::transport::shm
