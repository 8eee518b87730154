// Shared memory: creates and checks sealed memory, and passes descriptors over a unix socket.
#include "transport/shm/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::transport::shm {

namespace {
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
}

void refuse(const char* what) {
  throw SystemFailure(fmt::format("cannot {} shared memory: {}", what, socket::reason_of(errno)));
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

namespace {

// Room for more descriptors than one: extra ones are received, closed and refused, never leaked.
constexpr std::size_t kMostDescriptors = 4;

struct DescriptorMessage {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  char byte = 'm';
  iovec piece{&byte, 1};
  msghdr header{};

  DescriptorMessage() noexcept {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
  }
};

}  // namespace

bool send_descriptor(const socket::Descriptor& socket, const socket::Descriptor& memory) noexcept {
  DescriptorMessage message;
  message.header.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* attached = CMSG_FIRSTHDR(&message.header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = memory.number();
  std::memcpy(CMSG_DATA(attached), &number, sizeof number);
  return ::sendmsg(socket.number(), &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

std::optional<socket::Descriptor> receive_descriptor(const socket::Descriptor& socket) {
  DescriptorMessage message;
  message.header.msg_controllen = message.control.size();
  const ssize_t got = ::recvmsg(socket.number(), &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got <= 0) throw PeerLost("the connection was closed before shared memory arrived");
  std::optional<socket::Descriptor> taken;
  std::size_t count = 0;
  for (cmsghdr* attached = CMSG_FIRSTHDR(&message.header); attached != nullptr;
       attached = CMSG_NXTHDR(&message.header, attached)) {
    if (attached->cmsg_level != SOL_SOCKET || attached->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= attached->cmsg_len - CMSG_LEN(0); at += sizeof(int), ++count) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(attached) + at, sizeof number);
      taken.emplace(number);
    }
  }
  if (count == 0 && (message.header.msg_flags & MSG_CTRUNC) != 0)
    throw SystemFailure("cannot receive shared memory: " + socket::reason_of(EMFILE));
  if (count != 1 || (message.header.msg_flags & MSG_CTRUNC) != 0)
    throw Corrupt("expected one descriptor of shared memory, received something else");
  return taken;
}

void ring(socket::Channel& channel) noexcept {
  const std::byte one{1};
  static_cast<void>(channel.write(std::span(&one, 1)));
}

bool take_rings(socket::Channel& channel, std::size_t& rings) noexcept {
  std::array<std::byte, 64> bytes;
  while (true) {
    const socket::Moved moved = channel.read(std::span<std::byte>(bytes));
    if (moved.outcome == socket::Moved::Outcome::closed) return false;
    rings += moved.bytes;
    if (moved.bytes < bytes.size()) return true;
  }
}

}  // namespace syncopate::transport::shm
