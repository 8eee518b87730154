// Ranks as threads of one process over real sockets, and a peer with scripted misbehaviour.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "syncopate/version.hpp"
#include "transport/connect/handshake.hpp"
#include "transport/connect/peer_info.hpp"
#include "transport/join.hpp"

namespace syncopate::transport::test {

using namespace std::chrono_literals;

inline base::Time in(base::Duration time) { return std::chrono::steady_clock::now() + time; }

/// A rendezvous that records every rank's text.
class Listening final : public connect::rendezvous::Rendezvous {
 public:
  explicit Listening(std::shared_ptr<connect::rendezvous::Board> board)
      : inner_(connect::rendezvous::in_memory(std::move(board))) {}
  std::vector<std::string> exchange(const connect::rendezvous::Member& me, std::string mine,
                                    base::Time deadline) override {
    return texts = inner_->exchange(me, std::move(mine), deadline);
  }
  [[nodiscard]] connect::PeerInfo of(int rank) const {
    const connect::Speaker member{rank, static_cast<int>(texts.size())};
    return connect::decode_peer_info(connect::unseal(texts.at(static_cast<std::size_t>(rank)), member, secret), rank);
  }
  [[nodiscard]] connect::Digest digest() const { return base::crypto::digest_of(texts); }
  std::vector<std::string> texts;
  std::string secret;  ///< seals them

 private:
  std::unique_ptr<connect::rendezvous::Rendezvous> inner_;
};

inline GroupOptions quiet_options() {
  GroupOptions options;
  options.log.level = LogLevel::off;
  options.transport = TransportChoice::tcp;
  options.tls = TlsChoice::automatic;
  options.join_timeout = 30s;
  options.silence = 8s;  // long enough that only tests about silence reach it on a busy machine
  options.streams = 1;
  options.checksum = false;
  return options;
}

/// Runs `body` on `size` ranks, one thread each; rank r is on host `host_of(r)`. Returns each rank's exception.
inline std::vector<std::exception_ptr> outcomes_of_ranks(
    int size, const GroupOptions& options, const std::function<void(Endpoint&)>& body,
    const std::function<std::string(int)>& host_of = [](int) { return socket::host_identity(); }) {
  const auto board = connect::rendezvous::make_board();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        GroupOptions mine = options;
        mine.rank = rank;
        mine.size = size;
        const auto meeting = connect::rendezvous::in_memory(board);
        Endpoint endpoint = join(mine, *meeting, host_of(rank));
        body(endpoint);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  threads.clear();
  return failures;
}

/// Runs bodies that must not throw; otherwise as `outcomes_of_ranks`.
inline void with_ranks(
    int size, const GroupOptions& options, const std::function<void(Endpoint&)>& body,
    const std::function<std::string(int)>& host_of = [](int) { return socket::host_identity(); }) {
  for (const auto& failure : outcomes_of_ranks(size, options, body, host_of))
    if (failure) std::rethrow_exception(failure);
}

/// Polls until `count` posts have finished; throws what poll throws, and Timeout after 30 s.
inline void finish(Transport& links, int count, Patience patience = {}) {
  const base::Time end = in(30s);
  while (count > 0) {
    if (std::chrono::steady_clock::now() >= end) throw Timeout("posts did not finish");
    for (const Event& event : links.poll(end, patience)) {
      if (event.arrival) links.release(event.token);
      --count;
    }
  }
}

/// A barrier over the links: no rank passes before all have arrived.
inline void barrier(Endpoint& me, std::uint64_t operation) {
  std::vector<std::byte> in(static_cast<std::size_t>(me.size));
  const std::byte out{1};
  for (int peer = 0; peer < me.size; ++peer) {
    if (peer == me.rank) continue;
    me.links->send({peer, {operation, 1}, {&out, 1}, 1});
    me.links->receive(peer, {operation, 1}, {&in[static_cast<std::size_t>(peer)], 1}, 2);
  }
  finish(*me.links, 2 * (me.size - 1));
}

/// Makes the calls, then polls until the group fails. Returns the failure; without a failure one of kind Misuse, which
/// no group reports. The calls belong to it because the failure may come with any of them.
inline membership::Failure failure_seen(
    Transport& links, const std::function<void()>& calls = [] {}) {
  try {
    calls();
    for (const base::Time end = in(30s); std::chrono::steady_clock::now() < end;) std::ignore = links.poll(end, {});
  } catch (const Error& error) {
    return {error.kind(), error.what(), error.where()};
  }
  return {ErrorKind::misuse, "no failure within 30 s", {}};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Waits until the socket can be read, or 10 s.
inline void await_readable(const socket::Descriptor& socket) {
  pollfd one{socket.number(), POLLIN, 0};
  ::poll(&one, 1, 10'000);
}

/// Rank 1 of 2, or another rank that a test sets: joins the rendezvous and sends only what the test sends.
class ScriptedPeer final {
 public:
  ScriptedPeer(const std::shared_ptr<connect::rendezvous::Board>& board, int rank, int size,
               const std::string& owner = "another user")
      : rank_(rank), meeting_(board) {
    listener_ = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
    const connect::PeerInfo mine{.version = std::string(version()),
                                 .address = socket::local_address(listener_).text(),
                                 .host = socket::host_identity(),
                                 .memory_socket = "syncopate-test-nobody-listens-here",
                                 .lends = true,
                                 .owner = owner};
    std::ignore = meeting_.exchange({rank, size}, connect::seal(encode(mine), {rank, size}, {}), in(30s));
  }

  [[nodiscard]] connect::Handshake greet(int to, connect::Purpose purpose, const std::string& secret = {}) const {
    const connect::Hello hello{
        .version = {}, .purpose = purpose, .group = meeting_.of(0).group, .from = rank_, .to = to};
    const bool memory = purpose == connect::Purpose::memory;
    auto handshake = connect::Handshake::call(socket::Channel(memory ? dial_memory(to) : dial(to)), hello, secret,
                                              meeting_.digest());
    while (handshake.advance() == connect::Handshake::State::reading) await_readable(handshake.channel().socket());
    return handshake;
  }
  [[nodiscard]] socket::Channel connect(int to, connect::Purpose purpose) const {
    auto handshake = greet(to, purpose);
    EXPECT_EQ(handshake.state(), connect::Handshake::State::done) << handshake.reason();
    return handshake.take();
  }
  [[nodiscard]] socket::Descriptor dial(int to) const {
    socket::Descriptor socket = socket::start_connection(socket::Address::parse(meeting_.of(to).address), {});
    pollfd one{socket.number(), POLLOUT, 0};
    ::poll(&one, 1, 10'000);
    return socket;
  }
  /// Connects to the socket for ranks that share memory.
  [[nodiscard]] socket::Descriptor dial_memory(int to) const {
    return socket::start_connection(socket::Address::named(meeting_.of(to).memory_socket), {});
  }
  /// Accepts the next caller.
  [[nodiscard]] socket::Channel answer() const {
    await_readable(listener_);
    auto handshake =
        connect::Handshake::answer(socket::Channel(socket::accept_from(listener_)),
                                   {.version = {}, .group = group(), .from = rank_}, {}, meeting_.digest());
    while (handshake.advance() == connect::Handshake::State::reading) await_readable(handshake.channel().socket());
    EXPECT_EQ(handshake.state(), connect::Handshake::State::done) << handshake.reason();
    return handshake.take();
  }
  void stop_listening() { listener_ = socket::Descriptor(); }
  [[nodiscard]] std::uint64_t group() const { return meeting_.of(0).group; }
  [[nodiscard]] connect::Digest meeting() const { return meeting_.digest(); }

 private:
  int rank_;
  Listening meeting_;
  socket::Descriptor listener_;
};

/// Rank 0 of two, joined with a scripted rank 1 whose control connection exists.
class Pair final {
 public:
  explicit Pair(GroupOptions options = quiet_options(), const std::string& peer_owner = "another user") {
    const auto board = connect::rendezvous::make_board();
    std::jthread joining([&] {
      options.rank = 0;
      options.size = 2;
      const auto meeting = connect::rendezvous::in_memory(board);
      endpoint = join(options, *meeting);
    });
    peer = std::make_unique<ScriptedPeer>(board, 1, 2, peer_owner);
    control = peer->connect(0, connect::Purpose::control);
  }
  ~Pair() { control.close(); }  // rank 0 would wait for its answer to a goodbye
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  std::unique_ptr<ScriptedPeer> peer;
  socket::Channel control;
  Endpoint endpoint;
};

/// A new folder below the system's temporary one, removed at the end.
class Folder final {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "syncopate-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

/// Writes a file that only this user can read, and returns its path.
inline std::string secret_in(const Folder& folder, std::string_view secret) {
  const std::string path = folder.path + "/secret";
  std::ofstream(path) << secret;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return path;
}

}  // namespace syncopate::transport::test
