// Two ends of one TCP connection within this process, under TLS or about to be.
#pragma once

#include <random>
#include <utility>
#include <vector>

#include "transport/ranks.hpp"
#include "transport/socket/channel.hpp"

namespace syncopate::transport::socket {

using namespace std::chrono_literals;
using Outcome = Moved::Outcome;

inline constexpr TlsKey kKey{std::byte{1}, std::byte{2}, std::byte{3}};
inline constexpr TlsKey kOtherKey{std::byte{1}, std::byte{2}, std::byte{4}};

/// A TCP connection within this process.
inline std::pair<Descriptor, Descriptor> connection() {
  const Descriptor listener = listen_on(Address::parse("127.0.0.1:0"));
  Descriptor calling = start_connection(local_address(listener), {});
  test::await_readable(listener);
  Descriptor called = accept_from(listener);
  return {std::move(calling), std::move(called)};
}

struct Two {
  Channel client, server;
  Moved client_end, server_end;

  Two() {
    auto [calling, called] = connection();
    client = Channel(std::move(calling));
    server = Channel(std::move(called));
  }
  explicit Two(const TlsKey& of_server) : Two() {
    client.secure(kKey, TlsRole::client);
    server.secure(of_server, TlsRole::server);
    settle();
  }
  void settle() {
    for (const base::Time end = test::in(10s); std::chrono::steady_clock::now() < end;) {
      if (client_end.outcome == Outcome::nothing_now) client_end = client.negotiate();
      if (server_end.outcome == Outcome::nothing_now) server_end = server.negotiate();
      if (client_end.outcome == Outcome::closed) client.close();
      if (server_end.outcome == Outcome::closed) server.close();
      if (client_end.outcome != Outcome::nothing_now && server_end.outcome != Outcome::nothing_now) break;
    }
  }
};

inline std::vector<std::byte> noise(std::size_t bytes, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> all(bytes);
  for (std::byte& byte : all) byte = static_cast<std::byte>(random());
  return all;
}

/// Moves `bytes` from one end to the other, in reads of `piece` bytes. Returns the arrived bytes.
inline std::vector<std::byte> pass(Channel& from, Channel& to, std::span<const std::byte> bytes, std::size_t piece) {
  std::vector<std::byte> got;
  std::vector<std::byte> into(piece);
  std::size_t sent = 0;
  for (const base::Time end = test::in(30s); got.size() < bytes.size() && std::chrono::steady_clock::now() < end;) {
    if (sent < bytes.size()) sent += from.write(bytes.subspan(sent)).bytes;
    const Moved moved = to.read(std::span(into));
    if (moved.outcome == Outcome::closed) break;
    got.insert(got.end(), into.begin(), into.begin() + static_cast<std::ptrdiff_t>(moved.bytes));
  }
  return got;
}

}  // namespace syncopate::transport::socket
