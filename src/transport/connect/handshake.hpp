// Handshake: both ends of a new connection identify themselves and prove the job's secret before any other data.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "base/crypto/secret.hpp"
#include "transport/socket/channel.hpp"

namespace syncopate::transport::connect {

/// The sender of a text: a rank, and the size of its job.
struct Speaker {
  int rank = 0;
  int size = 1;
};

/// `text` of the rank `of`, with a code if there is a secret. The code also covers rank and size: no other rank can use
/// the text.
[[nodiscard]] std::string seal(const std::string& text, const Speaker& of, const std::string& secret);
/// The text that the rank `of` has sealed. Throws Unauthorized if it was changed, or sealed by another rank, or with
/// another secret, or if only one of the two ranks has a secret; Corrupt if it is not a sealed text.
[[nodiscard]] std::string unseal(const std::string& sealed, const Speaker& of, const std::string& secret);

using base::crypto::Digest;

/// The last three are those of streams to parameter servers, by the process that calls.
enum class Purpose : std::uint8_t {
  rendezvous = 1,
  control = 2,
  data = 3,
  memory = 4,
  worker = 5,
  server = 6,
  observer = 7
};

/// Value of `Hello::to` of a caller of a stream that accepts any server of its job.
inline constexpr std::int32_t kAnyone = -1;

inline constexpr std::uint16_t kProtocol = 3;
inline constexpr std::size_t kHelloBytes = 96;
inline constexpr std::size_t kProofBytes = Digest{}.size();

/// The sender, and the purpose of the connection. Magic, protocol and version keep their offsets in every future
/// protocol, so that any two versions can name each other.
struct Hello {
  std::uint16_t protocol = kProtocol;
  std::string version;  ///< the library's, at most 15 characters
  Purpose purpose = Purpose::data;
  std::uint64_t group = 0;
  std::int32_t from = -1;
  std::int32_t to = kAnyone;
  std::uint32_t stream = 0;
  bool tls = false;  ///< the sender encrypts this connection
};

/// One side of one handshake, as a state machine over a non-blocking channel:
///   caller -> hello;  answerer -> hello;  caller -> proof;  with TLS: its handshake;  answerer -> proof.
/// proof = HMAC-SHA256(secret, role || meeting || caller's hello || answerer's hello). Each hello carries a fresh
/// 32-byte nonce; meeting is the digest of the rendezvous. The key of TLS is the same HMAC with 'T' as the role. The
/// caller proves first: a caller without the secret gets nothing that was made with it. The answerer's proof means that
/// the caller is accepted; a caller that was cut off to make room therefore fails here and does not see a lost peer.
/// Without a secret the key of the HMAC is empty: same path, no protection.
class Handshake final {
 public:
  enum class State : std::uint8_t { reading, writing, done, refused };
  enum class Cause : std::uint8_t {
    none,
    no_socket,  ///< this process may open no more sockets
    unreachable,
    cut_off,  ///< the other end closed an established connection
    stranger,
    version,
    tls,  ///< only one end encrypts; an answerer reports this only to a caller that has the secret
    unauthorized
  };

  /// The side that connected and expects to reach `mine.to`. `meeting` is the digest of all texts of the rendezvous,
  /// zeros before it; it and the secret are the same on both sides.
  [[nodiscard]] static Handshake call(socket::Channel channel, const Hello& mine, std::string secret,
                                      const Digest& meeting = {});
  /// The side that accepted. `mine.purpose`, `to` and `stream` are taken from the caller.
  [[nodiscard]] static Handshake answer(socket::Channel channel, const Hello& mine, std::string secret,
                                        const Digest& meeting = {});

  /// Moves as far as possible without blocking. Returns what it waits for, or how it ended.
  State advance();

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const Hello& mine() const noexcept { return mine_; }
  [[nodiscard]] const Hello& peer() const noexcept { return peer_; }  ///< proven once the state is `done`
  [[nodiscard]] Cause cause() const noexcept { return cause_; }       ///< of a refusal
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] const socket::Channel& channel() const noexcept { return channel_; }
  [[nodiscard]] socket::Channel take() noexcept { return std::move(channel_); }

 private:
  using HelloBytes = std::array<std::byte, kHelloBytes>;
  enum class Step : std::uint8_t { send_hello, read_hello, send_proof, read_proof, negotiate_tls };

  Handshake(socket::Channel channel, bool caller, const Hello& mine);
  void say_hello();
  [[nodiscard]] bool move();
  [[nodiscard]] bool negotiate_tls();
  void stepped();
  void judge_hello();
  void judge_proof();
  void proceed();
  void finish();
  void expect(Step step, std::size_t bytes);
  void send(Step step, base::ConstBytes bytes);
  void lose(const socket::Moved& moved);
  void refuse(Cause cause, std::string reason);
  [[nodiscard]] const HelloBytes& callers_hello() const noexcept { return caller_ ? my_hello_ : peer_hello_; }
  [[nodiscard]] const HelloBytes& answerers_hello() const noexcept { return caller_ ? peer_hello_ : my_hello_; }
  [[nodiscard]] Digest code_as(std::byte role) const;

  socket::Channel channel_;
  bool caller_;
  Hello mine_;
  Hello peer_;
  std::string secret_;
  Digest meeting_{};
  HelloBytes my_hello_{};
  HelloBytes peer_hello_{};
  Step step_ = Step::read_hello;
  State state_ = State::reading;
  std::array<std::byte, kHelloBytes> buffer_{};
  std::size_t moved_ = 0;
  std::size_t wanted_ = 0;
  Cause cause_ = Cause::none;
  std::string reason_;
};

}  // namespace syncopate::transport::connect
