// A neighbour: attacks of a scripted rank that shares this host's memory with rank 0.
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>

#include "transport/connect/hello.hpp"
#include "transport/ranks.hpp"
#include "transport/shm/heap.hpp"
#include "transport/shm/ring_buffer.hpp"
#include "transport/shm/shared_memory.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport {
namespace {

using test::finish;
using test::in;
using namespace std::chrono_literals;

/// Rank 0 with a scripted rank 1 that shares its host.
class Neighbour : public testing::Test {
 protected:
  test::Pair pair_{[] {
                     GroupOptions options = test::quiet_options();
                     options.transport = TransportChoice::automatic;
                     return options;
                   }(),
                   socket::user_identity()};
  std::vector<std::byte> into_ = std::vector<std::byte>(1000);
  static constexpr std::uint64_t kHeapBytes = std::uint64_t{1} << 20;
  std::shared_ptr<shm::Heap> heap_ = shm::Heap::of(kHeapBytes);

  void give_memory(const socket::Channel& channel, const socket::Descriptor& region) {
    ASSERT_TRUE(shm::send_descriptor(channel.socket(), region));
    ASSERT_TRUE(heap_->pass(channel.socket()));
  }
  [[nodiscard]] membership::Failure failure_of_receive() {
    return test::failure_seen(*pair_.endpoint.links, [&] { pair_.endpoint.links->receive(1, {1, 1}, into_, 1); });
  }
};

TEST_F(Neighbour, MayHandOverMemoryAndSpeak) {
  const auto channel = pair_.peer->connect(0, connect::Purpose::memory);
  shm::Region region = shm::Region::make();
  give_memory(channel, region.memory());
  shm::RingWriter writer(region.ring(shm::Side::maker), region.tail(shm::Side::maker));
  ASSERT_TRUE(writer.push({{1, 1}, 1000}, std::vector<std::byte>(1000, std::byte{2})));
  pair_.endpoint.links->receive(1, {1, 1}, into_, 1);
  finish(*pair_.endpoint.links, 1);
}

TEST_F(Neighbour, WithForeignMemoryIsCorrupt) {
  const auto channel = pair_.peer->connect(0, connect::Purpose::memory);
  give_memory(channel, socket::Descriptor(::memfd_create("unsealed", MFD_CLOEXEC)));
  const membership::Failure failure = failure_of_receive();
  EXPECT_EQ(failure.kind, ErrorKind::corrupt) << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
}

TEST_F(Neighbour, WithoutADescriptorIsCorrupt) {
  auto channel = pair_.peer->connect(0, connect::Purpose::memory);
  shm::ring(channel);
  EXPECT_EQ(failure_of_receive().kind, ErrorKind::corrupt);
}

TEST_F(Neighbour, WhoseHeapCouldShrinkIsCorrupt) {
  const auto channel = pair_.peer->connect(0, connect::Purpose::memory);
  ASSERT_TRUE(shm::send_descriptor(channel.socket(), shm::Region::make().memory()));
  ASSERT_TRUE(shm::send_descriptor(channel.socket(), socket::Descriptor(::memfd_create("unsealed", MFD_CLOEXEC))));
  EXPECT_EQ(failure_of_receive().kind, ErrorKind::corrupt);
}

/// Rank 0's reaction to one record that names its frame's place.
class Pointing : public Neighbour {
 protected:
  [[nodiscard]] std::string outcome(shm::Kind kind, std::uint64_t place) {
    const auto channel = pair_.peer->connect(0, connect::Purpose::memory);
    shm::Region region = shm::Region::make();
    give_memory(channel, region.memory());
    shm::RingWriter writer(region.ring(shm::Side::maker), region.tail(shm::Side::maker));
    EXPECT_TRUE(writer.push({{1, 1}, 1000}, kind, place));
    pair_.endpoint.links->receive(1, {1, 1}, into_, 1);
    try {
      finish(*pair_.endpoint.links, 1);
    } catch (const Error&) {
      return std::string(name_of(pair_.endpoint.control->failure()->kind));
    }
    return "arrived";
  }
};

TEST_F(Pointing, IntoItsHeapIsReadThere) { EXPECT_EQ(outcome(shm::Kind::reference, kHeapBytes - 1000), "arrived"); }
TEST_F(Pointing, BeyondItsHeapIsCorrupt) { EXPECT_EQ(outcome(shm::Kind::reference, kHeapBytes - 999), "Corrupt"); }
TEST_F(Pointing, FarBeyondItsHeapIsCorrupt) { EXPECT_EQ(outcome(shm::Kind::loan, ~std::uint64_t{0} - 10), "Corrupt"); }
TEST_F(Pointing, AtMemoryThatWasNotLentIsCorrupt) { EXPECT_EQ(outcome(shm::Kind::returned, 0), "Corrupt"); }
TEST_F(Pointing, AtARingThatHasNothingIsCorrupt) { EXPECT_EQ(outcome(shm::Kind::reply, 0), "Corrupt"); }

TEST_F(Pointing, ElsewhereThanWhereAFrameIsAwaitedIsCorrupt) {
  const auto memory = pair_.endpoint.links->lending()->allocate(3000);
  const auto channel = pair_.peer->connect(0, connect::Purpose::memory);
  shm::Region region = shm::Region::make();
  give_memory(channel, region.memory());
  shm::RingWriter writer(region.ring(shm::Side::maker), region.tail(shm::Side::maker));
  ASSERT_TRUE(writer.push({{1, 1}, 1000}, shm::Kind::returned, 0));
  ASSERT_TRUE(writer.push({{1, 1}, 1000}, shm::Kind::returned, 0));
  Transport& links = *pair_.endpoint.links;
  links.receive(1, {1, 1}, {memory.get(), 1000}, 1);
  finish(links, 1);
  const membership::Failure failure = test::failure_seen(links, [&] {
    links.receive(1, {1, 1}, {memory.get() + 1000, 1000}, 1);
  });
  EXPECT_EQ(failure.kind, ErrorKind::corrupt) << failure.message;
}

TEST_F(Neighbour, ThatWritesNonsenseIsCorrupt) {
  const auto channel = pair_.peer->connect(0, connect::Purpose::memory);
  shm::Region region = shm::Region::make();
  give_memory(channel, region.memory());
  std::memset(region.ring(shm::Side::maker), 0xee, 4096);
  const membership::Failure failure = failure_of_receive();
  EXPECT_EQ(failure.kind, ErrorKind::corrupt) << failure.message;
}

// A ring reads its tail when it seems full: here after as many replies as it has lines.
TEST_F(Neighbour, ThatGivesBackWhatItCannotHaveReadIsCorrupt) {
  const auto channel = pair_.peer->connect(0, connect::Purpose::memory);
  shm::Region region = shm::Region::make();
  give_memory(channel, region.memory());
  *region.tail(shm::Side::guest) = 7;
  shm::RingWriter writer(region.ring(shm::Side::maker), region.tail(shm::Side::maker));
  Transport& links = *pair_.endpoint.links;
  const std::vector<std::byte> frame(1000, std::byte{2});
  std::uint64_t replies = 0;
  const membership::Failure failure = test::failure_seen(links, [&] {
    while (replies < 2 * shm::kRingBytes / shm::kLineBytes && writer.push({{1, 1}, 1000}, frame)) {
      links.receive(1, {1, 1}, into_, 1);
      for (bool arrived = false; !arrived;)
        for (const Event& event : links.poll(in(30s), {})) arrived = arrived || event.arrival;
      links.lending()->reply(1, {1, {1, 1}, frame, 2});
      std::atomic_ref(*region.replies(shm::Side::maker)).store(++replies);
    }
  });
  EXPECT_EQ(failure.kind, ErrorKind::corrupt) << failure.message;
  EXPECT_EQ(failure.where.peer, 1);
  EXPECT_EQ(replies, shm::kRingBytes / shm::kLineBytes) << "the last of them did not leave";
}

/// Rank 0's frame of 64 KiB in its heap, as its neighbour reads it.
class Referred : public Neighbour {
 protected:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  socket::Channel channel_ = pair_.peer->connect(0, connect::Purpose::memory);
  shm::Region region_ = shm::Region::make();
  shm::RingReader reader_{region_.ring(shm::Side::guest), region_.tail(shm::Side::guest)};
  std::shared_ptr<std::byte[]> memory_ = pair_.endpoint.links->lending()->allocate(kBytes);

  [[nodiscard]] shm::Record lent() {
    give_memory(channel_, region_.memory());
    pair_.endpoint.links->lending()->lend({1, {1, 1}, {memory_.get(), kBytes}, 1});
    for (const base::Time end = in(10s); std::chrono::steady_clock::now() < end;) {
      std::ignore = pair_.endpoint.links->poll(in(1ms), {});
      if (const auto record = reader_.look()) return *record;
    }
    ADD_FAILURE() << "the frame did not come";
    return {};
  }
  void fail() { pair_.endpoint.control->report({ErrorKind::remote_failure, "another rank fails", {.rank = 0}}); }
};

TEST_F(Referred, CannotBeTouchedOnceItsOwnerKnowsOfAFailure) {
  const shm::Record record = lent();
  EXPECT_EQ(test::failure_seen(*pair_.endpoint.links, [&] { fail(); }).kind, ErrorKind::remote_failure);
  EXPECT_FALSE(reader_.hold(record));
}

TEST_F(Referred, IsLeftBeforeItsOwnerThrows) {
  const shm::Record record = lent();
  ASSERT_TRUE(reader_.hold(record));
  // The ring orders the two, and both ends map it at different addresses: a sanitizer does not see the order.
  const std::atomic_ref byte(memory_[0]);
  const std::jthread neighbour([&] {
    while (!pair_.endpoint.control->failed()) std::this_thread::yield();
    byte = std::byte{7};
    reader_.give_back(record);
  });
  EXPECT_EQ(test::failure_seen(*pair_.endpoint.links, [&] { fail(); }).kind, ErrorKind::remote_failure);
  EXPECT_EQ(byte.load(), std::byte{7});
}

TEST_F(Referred, DoesNotKeepItsOwnerFromThrowing) {
  const shm::Record record = lent();
  ASSERT_TRUE(reader_.hold(record));
  EXPECT_EQ(test::failure_seen(*pair_.endpoint.links, [&] { fail(); }).kind, ErrorKind::remote_failure);
}

TEST_F(Neighbour, ThatTakesAnOfferBackIsReadNoMore) {
  const auto channel = pair_.peer->connect(0, connect::Purpose::memory);
  shm::Region region = shm::Region::make();
  give_memory(channel, region.memory());
  shm::RingWriter writer(region.ring(shm::Side::maker), region.tail(shm::Side::maker));
  const std::uint64_t at = writer.position();
  ASSERT_TRUE(writer.push({{1, 1}, 1000}, shm::Kind::reference, 0));
  ASSERT_TRUE(writer.revoke(at));
  pair_.endpoint.links->receive(1, {1, 1}, into_, 1);
  EXPECT_TRUE(pair_.endpoint.links->poll(in(100ms), {}).empty());
}

TEST_F(Neighbour, ThatCannotBeReachedIsLost) {
  EXPECT_EQ(test::failure_seen(*pair_.endpoint.links,
                               [&] {
                                 pair_.control = socket::Channel();
                                 pair_.endpoint.links->receive(1, {1, 1}, into_, 1);
                               })
                .kind,
            ErrorKind::peer_lost);
}

TEST_F(Neighbour, AtTheWrongDoorIsTurnedAway) {
  const connect::Hello hello{
      .version = {}, .purpose = connect::Purpose::data, .group = pair_.peer->group(), .from = 1, .to = 0};
  auto handshake =
      connect::Handshake::call(socket::Channel(pair_.peer->dial_memory(0)), hello, {}, pair_.peer->meeting());
  while (handshake.advance() == connect::Handshake::State::reading) test::await_readable(handshake.channel().socket());
  ASSERT_EQ(handshake.state(), connect::Handshake::State::done);
  test::await_readable(handshake.channel().socket());
  std::byte byte;
  socket::Channel channel = handshake.take();
  EXPECT_EQ(channel.read(std::span(&byte, 1)).outcome, socket::Moved::Outcome::closed);
}

TEST_F(Neighbour, OfAnotherUserIsTurnedAwayBeforeItIsHeard) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string words = test::hello::first_words({.group = pair_.peer->group(), .purpose = 4});
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(3);
    const socket::Descriptor socket = pair_.peer->dial_memory(0);
    std::ignore = ::send(socket.number(), words.data(), words.size(), MSG_NOSIGNAL);
    test::await_readable(socket);
    char byte = 0;
    ::_exit(::recv(socket.number(), &byte, 1, MSG_DONTWAIT) <= 0 ? 0 : 1);  // closed, without any bytes
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace syncopate::transport
