// Messages in place of shared memory: no descriptor, one, or several, of any kind; and rings.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tuple>
#include <vector>

#include "fuzz/target.hpp"
#include "fuzz/transport/ends.hpp"
#include "transport/shm/region.hpp"
#include "transport/shm/shared_memory.hpp"

namespace syncopate::fuzz::target {

using namespace transport;

namespace {

/// `count` memory files: some sealed, with a length near the right one.
std::vector<socket::Descriptor> memories(Fields& fields, int count) {
  std::vector<socket::Descriptor> made;
  for (int i = 0; i < count; ++i) {
    made.emplace_back(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const auto seals = fields.take<std::uint8_t>();
    const std::size_t bytes = seals % 2 == 0 ? fields.take<std::uint32_t>() : (64 << 10) + 2 * shm::kRingBytes;
    if (::ftruncate(made.back().number(), static_cast<off_t>(bytes)) != 0) throw std::runtime_error("no memory");
    ::fcntl(made.back().number(), F_ADD_SEALS, seals / 2 % 16);
  }
  return made;
}

bool send(const socket::Channel& from, const std::vector<socket::Descriptor>& files, std::uint8_t bytes) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 8)> control{};
  std::array<char, 256> text{};
  iovec piece{text.data(), std::size_t{1} + bytes / 64};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * files.size());
    cmsghdr* attached = CMSG_FIRSTHDR(&message);
    *attached = {.cmsg_len = CMSG_LEN(sizeof(int) * files.size()), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    for (std::size_t i = 0; i < files.size(); ++i) {
      const int number = files[i].number();
      std::memcpy(CMSG_DATA(attached) + i * sizeof number, &number, sizeof number);
    }
  }
  return ::sendmsg(from.number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

}  // namespace

void descriptor_passing(Input input) {
  Ends ends;
  for (Fields fields(input); !fields.empty();) {
    const auto count = fields.take<std::uint8_t>() % 6;
    if (!send(ends.peer, memories(fields, count), fields.take<std::uint8_t>())) break;
    may_refuse<Corrupt, PeerLost>([&] {
      auto memory = shm::receive_descriptor(ends.tested.socket());
      if (memory) std::ignore = shm::Region::adopt(std::move(*memory));
    });
  }
  std::size_t rings = 0;
  hold(shm::take_rings(ends.tested, rings), "the other end is there");
}

}  // namespace syncopate::fuzz::target
