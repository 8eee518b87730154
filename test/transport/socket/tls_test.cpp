// TLS over a connection: the arriving bytes are those that were sent; anything else ends the connection.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/socket/tls_pair.hpp"

namespace syncopate::transport::socket {
namespace {

/// Waits for the end of a connection, and returns how the other end sees it.
Moved end_of(Channel& channel) {
  for (const base::Time end = test::in(10s); std::chrono::steady_clock::now() < end;) {
    std::array<std::byte, 100> bytes;
    const Moved moved = channel.read(std::span<std::byte>(bytes));
    if (moved.outcome == Outcome::closed) return moved;
  }
  return {};
}

TEST(Tls, BothEndsWithTheKeyMeet) {
  const Two two(kKey);
  EXPECT_EQ(two.client_end.outcome, Outcome::some);
  EXPECT_EQ(two.server_end.outcome, Outcome::some);
}

TEST(Tls, AnotherKeyIsRefusedOnBothEnds) {
  const Two two(kOtherKey);
  EXPECT_EQ(two.client_end.outcome, Outcome::closed);
  EXPECT_EQ(two.server_end.outcome, Outcome::closed);
  EXPECT_EQ(two.server_end.error, kForged);
}

struct Freed {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};
template <class T>
using Owned = std::unique_ptr<T, Freed>;

/// A server without a key, with a self-signed certificate.
Owned<SSL> server_with_certificate(int socket) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> certificate(X509_new());
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  EXPECT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_method()));
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  Owned<SSL> server(SSL_new(context.get()));
  SSL_set_fd(server.get(), socket);
  SSL_set_accept_state(server.get());
  return server;
}

TEST(Tls, ACertificateDoesNotReplaceTheKey) {
  Two two;
  two.client.secure(kKey, TlsRole::client);
  const Owned<SSL> server = server_with_certificate(two.server.number());
  Moved end;
  for (const base::Time limit = test::in(10s);
       end.outcome == Outcome::nothing_now && std::chrono::steady_clock::now() < limit;) {
    end = two.client.negotiate();
    SSL_do_handshake(server.get());
  }
  EXPECT_EQ(end.outcome, Outcome::closed);
  EXPECT_EQ(end.error, kForged);
}

TEST(Tls, ACallerWithoutTheKeyIsRefused) {
  Two two;
  two.server.secure(kKey, TlsRole::server);
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_method()));
  const Owned<SSL> client(SSL_new(context.get()));
  SSL_set_fd(client.get(), two.client.number());
  SSL_set_connect_state(client.get());
  Moved end;
  for (const base::Time limit = test::in(10s);
       end.outcome == Outcome::nothing_now && std::chrono::steady_clock::now() < limit;) {
    SSL_do_handshake(client.get());
    end = two.server.negotiate();
  }
  EXPECT_EQ(end.outcome, Outcome::closed);
  EXPECT_EQ(end.error, kForged);
}

TEST(Tls, EveryByteArrivesInOrderWhateverTheSizes) {
  Two two(kKey);
  for (const std::size_t bytes : {1u, 4u, 44u, 16'383u, 16'384u, 16'385u, 65'536u, 1'000'003u})
    for (const std::size_t piece : {7u, 4096u, 100'000u}) {
      if (bytes / piece > 20'000) continue;
      const auto sent = noise(bytes);
      EXPECT_EQ(pass(two.client, two.server, sent, piece), sent) << bytes << " in pieces of " << piece;
      EXPECT_EQ(pass(two.server, two.client, sent, piece), sent) << bytes << " back in pieces of " << piece;
    }
}

TEST(Tls, GathersPiecesAndScattersThem) {
  Two two(kKey);
  auto first = noise(40), second = noise(100'000, 2), third = noise(3, 3);
  std::array<iovec, 3> out{iovec{first.data(), 40}, iovec{second.data(), 100'000}, iovec{third.data(), 3}};
  ASSERT_EQ(two.client.write(std::span(out)).bytes, 100'043u);
  std::vector<std::byte> head(40), body(100'003), tail(8192);
  std::array<iovec, 3> in{iovec{head.data(), 40}, iovec{body.data(), 100'003}, iovec{tail.data(), 8192}};
  test::await_readable(two.server.socket());
  for (std::size_t got = 0; got < 100'043;) {
    const Moved moved = two.server.read(std::span(in));
    ASSERT_NE(moved.outcome, Outcome::closed);
    EXPECT_FALSE(moved.more);
    got += moved.bytes;
    for (std::size_t left = moved.bytes, i = 0; i < in.size(); ++i) {
      const std::size_t part = std::min(left, in[i].iov_len);
      in[i] = {static_cast<std::byte*>(in[i].iov_base) + part, in[i].iov_len - part};
      left -= part;
    }
  }
  EXPECT_EQ(head, first);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), body.begin()));
  EXPECT_TRUE(std::equal(third.begin(), third.end(), body.begin() + 100'000));
}

TEST(Tls, NothingThatWasSentCanBeReadOnTheWay) {
  Two two(kKey);
  const std::vector<std::byte> sent(1000, std::byte{'x'});
  ASSERT_EQ(two.client.write(std::span<const std::byte>(sent)).bytes, 1000u);
  test::await_readable(two.server.socket());
  std::array<char, 2000> raw{};
  const ssize_t count = ::recv(two.server.number(), raw.data(), raw.size(), MSG_DONTWAIT);
  ASSERT_GT(count, 1000);
  EXPECT_EQ(std::string_view(raw.data(), static_cast<std::size_t>(count)).find("xxxx"), std::string_view::npos);
}

TEST(Tls, ManyKeysInARowGoUnnoticed) {
  auto [calling, called] = connection();
  Tls client(calling.number(), kKey, TlsRole::client, 20'000), server(called.number(), kKey, TlsRole::server, 20'000);
  bool client_done = false, server_done = false;
  for (const base::Time end = test::in(10s); !(client_done && server_done) && std::chrono::steady_clock::now() < end;) {
    client_done = client_done || client.negotiate().outcome == Outcome::some;
    server_done = server_done || server.negotiate().outcome == Outcome::some;
  }
  // A renewal is a separate record before the next bytes.
  auto sent = noise(30'000);
  std::array<int, 2> arrived{};
  for (int& bytes : arrived) {
    const iovec all{sent.data(), sent.size()};
    ASSERT_EQ(client.write({&all, 1}).bytes, sent.size());
    test::await_readable(called);
    ASSERT_EQ(::ioctl(called.number(), FIONREAD, &bytes), 0);
    std::vector<std::byte> into(sent.size());
    const iovec room{into.data(), into.size()};
    ASSERT_EQ(server.read({&room, 1}).bytes, sent.size());
  }
  EXPECT_GT(arrived[1], arrived[0]);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::byte> got(sent.size());
    std::size_t out = 0, in = 0;
    for (const base::Time end = test::in(10s); in < got.size() && std::chrono::steady_clock::now() < end;) {
      const iovec rest{sent.data() + out, sent.size() - out}, room{got.data() + in, got.size() - in};
      if (out < sent.size()) out += client.write({&rest, 1}).bytes;
      in += server.read({&room, 1}).bytes;
    }
    ASSERT_EQ(got, sent) << "round " << round;
  }
}

TEST(Tls, AFlippedByteIsFoundAndWhatCameBeforeItIsGiven) {
  Two two(kKey), path;  // the client's bytes pass through `path`
  const auto sent = noise(5000);
  ASSERT_EQ(two.client.write(std::span<const std::byte>(sent)).bytes, sent.size());
  ASSERT_EQ(two.client.write(std::span<const std::byte>(sent)).bytes, sent.size());
  test::await_readable(two.server.socket());
  std::vector<std::byte> raw(20'000);
  raw.resize(static_cast<std::size_t>(::recv(two.server.number(), raw.data(), raw.size(), MSG_WAITALL | MSG_DONTWAIT)));
  ASSERT_GT(raw.size(), 10'000u);
  raw[7000] ^= std::byte{4};
  ASSERT_EQ(path.client.write(std::span<const std::byte>(raw)).bytes, raw.size());
  test::await_readable(path.server.socket());
  ASSERT_EQ(::dup2(path.server.number(), two.server.number()), two.server.number());
  std::vector<std::byte> got(20'000);
  const Moved first = two.server.read(std::span(got));
  EXPECT_EQ(first.bytes, 5000u);
  EXPECT_TRUE(first.more) << "the end must be read without another event";
  const Moved end = two.server.read(std::span(got));
  EXPECT_EQ(end.outcome, Outcome::closed);
  EXPECT_EQ(end.error, kForged);
  EXPECT_EQ(two.server.read(std::span(got)).error, kForged) << "an end is permanent";
}

TEST(Tls, GarbageBetweenRecordsIsFound) {
  Two two(kKey);
  const std::string nonsense = "this is not a record of TLS, whatever it may be";
  ASSERT_EQ(::send(two.client.number(), nonsense.data(), nonsense.size(), 0), static_cast<ssize_t>(nonsense.size()));
  EXPECT_EQ(end_of(two.server).error, kForged);
}

TEST(Tls, AnEndInOrderIsToldFromACutConnection) {
  Two in_order(kKey), cut(kKey), amid_a_record(kKey);
  in_order.client.close();
  EXPECT_EQ(end_of(in_order.server).error, 0);
  ::shutdown(cut.client.number(), SHUT_WR);
  EXPECT_EQ(end_of(cut.server).error, kCutOff);
  const char begin[] = "\x17\x03\x03\x01\x00";
  ASSERT_EQ(::send(amid_a_record.client.number(), begin, 5, 0), 5);
  ::shutdown(amid_a_record.client.number(), SHUT_WR);
  EXPECT_EQ(end_of(amid_a_record.server).error, kCutOff);
}

TEST(Tls, WhoGoesAwayInTheHandshakeIsClosedInOrder) {
  Two two;
  two.client.secure(kKey, TlsRole::client);
  ASSERT_EQ(two.client.negotiate().outcome, Outcome::nothing_now);
  two.server.close();
  Moved end;
  while (end.outcome == Outcome::nothing_now) end = two.client.negotiate();
  EXPECT_EQ(end.outcome, Outcome::closed);
  EXPECT_NE(end.error, kForged);
}

// By then the child may use the same number for another file.
TEST(Tls, AForkedChildSaysNothingInItsParentsName) {
  Two two(kKey);
  std::array<int, 2> own{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, own.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(own[1], two.client.number());
    two.client.close();
    char byte;
    ::_exit(::recv(own[0], &byte, 1, MSG_DONTWAIT) < 0 ? 0 : 1);
  }
  for (const int end : own) ::close(end);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const auto sent = noise(100);
  EXPECT_EQ(pass(two.client, two.server, sent, 100), sent);
}

}  // namespace
}  // namespace syncopate::transport::socket
