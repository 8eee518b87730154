// A rank of this host that passes other descriptors than its memory is Corrupt or lost, and none of them stays open.
#include "transport/stranger.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "transport/shm/heap.hpp"

namespace syncopate::transport {
namespace {

using test::contains;
using namespace std::chrono_literals;

constexpr off_t kRegionBytes = (64 << 10) + 2 * (256 << 10);  // as in src/transport/shm/README.md
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

socket::Descriptor memory(off_t bytes, int seals) {
  socket::Descriptor made(::memfd_create("of a stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(made.number(), bytes), 0);
  EXPECT_EQ(::fcntl(made.number(), F_ADD_SEALS, seals), 0);
  return made;
}

/// Sends one byte, and with it these descriptors.
void hand_over(const socket::Channel& channel, std::initializer_list<const socket::Descriptor*> descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)] = {};
  char byte = 'm';
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (descriptors.size() > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* attached = CMSG_FIRSTHDR(&message);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    auto* into = reinterpret_cast<unsigned char*>(CMSG_DATA(attached));
    for (const socket::Descriptor* each : descriptors) {
      const int number = each->number();
      std::memcpy(into, &number, sizeof number);
      into += sizeof number;
    }
  }
  EXPECT_EQ(::sendmsg(channel.number(), &message, MSG_NOSIGNAL), 1);
}

std::ptrdiff_t open_now() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

/// Rank 0 with a scripted rank 1 that shares its host.
class MemoryStranger : public testing::Test {
 protected:
  test::Pair pair_{[] {
                     GroupOptions options = test::quiet_options();
                     options.transport = TransportChoice::automatic;
                     return options;
                   }(),
                   socket::user_identity()};
  std::vector<std::byte> into_ = std::vector<std::byte>(1000);
  socket::Channel channel_ = pair_.peer->connect(0, connect::Purpose::memory);

  [[nodiscard]] membership::Failure failure() {
    return test::failure_seen(*pair_.endpoint.links, [&] { pair_.endpoint.links->receive(1, {1, 1}, into_, 1); });
  }
};

struct Gift {
  const char* name;
  std::function<socket::Descriptor()> region;
  const char* says;
};

class WrongGift : public MemoryStranger, public testing::WithParamInterface<Gift> {};

TEST_P(WrongGift, InsteadOfARegionIsCorruptOrRefusedAndClosed) {
  const auto before = open_now();
  {
    const socket::Descriptor gift = GetParam().region();
    ASSERT_TRUE(gift);
    hand_over(channel_, {&gift});
  }
  const membership::Failure seen = failure();
  EXPECT_EQ(seen.kind, ErrorKind::corrupt);
  EXPECT_TRUE(contains(seen.message, GetParam().says)) << seen.message;
  EXPECT_EQ(seen.where.peer, 1);
  EXPECT_LE(open_now(), before);
}

TEST_P(WrongGift, InsteadOfAHeapIsCorruptOrRefused) {
  const socket::Descriptor region = memory(kRegionBytes, kSeals), gift = GetParam().region();
  ASSERT_TRUE(gift);
  hand_over(channel_, {&region});
  hand_over(channel_, {&gift});
  if (std::string_view(GetParam().name).starts_with("Sealed")) return;  // a heap of any size is one
  EXPECT_EQ(failure().kind, ErrorKind::corrupt);
}

socket::Descriptor end_of_pipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[1]);
  return socket::Descriptor(ends[0]);
}

INSTANTIATE_TEST_SUITE_P(
    Memory, WrongGift,
    testing::Values(Gift{"SealedAndEmpty", [] { return memory(0, kSeals); }, "has 0 bytes"},
                    Gift{"SealedAndSmall", [] { return memory(kRegionBytes - 1, kSeals); }, "bytes instead of"},
                    Gift{"SealedAndLarge", [] { return memory(kRegionBytes + 1, kSeals); }, "bytes instead of"},
                    Gift{"Unsealed", [] { return memory(kRegionBytes, 0); }, "seals"},
                    Gift{"MayShrink", [] { return memory(kRegionBytes, F_SEAL_GROW | F_SEAL_SEAL); }, "seals"},
                    Gift{"MayGrow", [] { return memory(kRegionBytes, F_SEAL_SHRINK | F_SEAL_SEAL); }, "seals"},
                    Gift{"MayBeSealedLater", [] { return memory(kRegionBytes, F_SEAL_SHRINK | F_SEAL_GROW); }, "seals"},
                    Gift{"NotToBeWritten", [] { return memory(kRegionBytes, kSeals | F_SEAL_WRITE); }, "seals"},
                    Gift{"Folder", [] { return socket::Descriptor(::open("/", O_RDONLY | O_CLOEXEC)); }, "seals"},
                    Gift{"Device", [] { return socket::Descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)); }, "seals"},
                    Gift{"Pipe", end_of_pipe, "seals"},
                    Gift{"Event", [] { return socket::Descriptor(::eventfd(0, EFD_CLOEXEC)); }, "seals"}),
    [](const auto& one) { return one.param.name; });

TEST_F(MemoryStranger, ThatHandsOverNothingIsCorrupt) {
  hand_over(channel_, {});
  const membership::Failure seen = failure();
  EXPECT_EQ(seen.kind, ErrorKind::corrupt);
  EXPECT_TRUE(contains(seen.message, "expected one descriptor")) << seen.message;
}

// The kernel cuts off descriptors beyond the receiver's room; neither those nor the others stay open.
TEST_F(MemoryStranger, ThatHandsOverSeveralThingsIsCorruptAndTheyAreClosed) {
  channel_.close();
  std::ignore = failure();  // this pair's rank has taken the connection, and closes no more descriptors
  const auto before = open_now();
  for (const int round : {2, 9}) {
    test::Pair pair({[] {
                      GroupOptions options = test::quiet_options();
                      options.transport = TransportChoice::automatic;
                      return options;
                    }()},
                    socket::user_identity());
    const socket::Channel channel = pair.peer->connect(0, connect::Purpose::memory);
    const socket::Descriptor right = memory(kRegionBytes, kSeals);
    const auto* one = &right;
    if (round == 2)
      hand_over(channel, {one, one});
    else
      hand_over(channel, {one, one, one, one, one, one, one, one, one});
    const membership::Failure seen = test::failure_seen(*pair.endpoint.links, [&] {
      pair.endpoint.links->receive(1, {1, 1}, into_, 1);
    });
    EXPECT_EQ(seen.kind, ErrorKind::corrupt);
    EXPECT_TRUE(contains(seen.message, "expected one descriptor")) << seen.message;
  }
  EXPECT_EQ(open_now(), before);
}

TEST_F(MemoryStranger, ThatClosesBeforeItsMemoryIsThereIsLost) {
  channel_.close();
  const membership::Failure seen = failure();
  EXPECT_EQ(seen.kind, ErrorKind::peer_lost);
  EXPECT_EQ(seen.where.peer, 1);
}

TEST_F(MemoryStranger, ThatClosesAfterItsRegionIsLostToo) {
  const socket::Descriptor region = memory(kRegionBytes, kSeals);
  hand_over(channel_, {&region});
  channel_.close();
  EXPECT_EQ(failure().kind, ErrorKind::peer_lost);
}

// A silent connection for memory blocks no rank: control continues, and a collective has its timeout.
TEST_F(MemoryStranger, ThatSaysNothingKeepsNobody) {
  pair_.endpoint.links->receive(1, {1, 1}, into_, 1);
  EXPECT_TRUE(pair_.endpoint.links->poll(test::in(50ms), {}).empty());
  EXPECT_TRUE(test::say(pair_.control, test::control::failure(ErrorKind::remote_failure, "the end")));
  EXPECT_EQ(test::failure_seen(*pair_.endpoint.links).message, "the end");
}

}  // namespace
}  // namespace syncopate::transport
