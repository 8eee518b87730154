// Proof: how the two ends of a stream prove to each other that they have the job's secret, as pure functions of bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/crypto/secret.hpp"

namespace syncopate::server::rpc {

inline constexpr std::uint16_t kProtocol = 2;
inline constexpr std::size_t kMostNameBytes = 64;

/// The sender. Magic, protocol and version keep their offsets in every future protocol.
struct Hello {
  std::uint16_t protocol = kProtocol;
  std::string version;       ///< the library's, at most 15 characters
  base::Duration silence{};  ///< the other end is given up after this time; whole milliseconds
  std::string identity;      ///< at most kMostNameBytes
  std::string job;           ///< at most kMostNameBytes; an answerer's is empty
};

inline constexpr std::size_t kHelloBytes = 192;
/// A hello's bytes, with a nonce.
using HelloBytes = std::array<std::byte, kHelloBytes>;

/// Whether a name is allowed in a hello: 1 to kMostNameBytes printable ASCII characters.
[[nodiscard]] bool is_name(std::string_view name) noexcept;

/// A caller's hello with a fresh nonce. Throws SystemFailure.
[[nodiscard]] HelloBytes say_hello(const Hello& hello);
/// Parses an untrusted hello; unprintable bytes become '?'. Empty if the bytes are not a hello.
[[nodiscard]] std::optional<Hello> read_hello(base::ConstBytes bytes);

enum class Role : std::uint8_t { caller, answerer };
/// HMAC-SHA256(secret, role, caller's hello, answerer's hello): the nonces, names, job, protocol and version of both.
[[nodiscard]] base::crypto::Digest prove(const std::string& secret, Role role, const HelloBytes& caller,
                                         const HelloBytes& answerer);

/// The answerer's side. Its nonces carry the time and a code made with its own key, so that it keeps nothing for a
/// caller that has not proved the secret: strangers cannot fill it or push others out. A nonce is valid for its caller
/// only, once, and for `window`. Only used nonces are kept, for that time.
class Challenger final {
 public:
  enum class Verdict : std::uint8_t { right, stale, wrong };

  /// Throws SystemFailure.
  Challenger(const Hello& mine, std::string secret, base::Duration window);
  /// This end's hello to that caller.
  [[nodiscard]] HelloBytes challenge(const HelloBytes& caller, base::Time now) const;
  /// Whether `answerer` is a hello that this end made for that caller, and `proof` the caller's. Stale: it was made too
  /// long ago, or was used already; the caller may request another.
  [[nodiscard]] Verdict check(const HelloBytes& caller, const HelloBytes& answerer, base::ConstBytes proof,
                              base::Time now);

 private:
  [[nodiscard]] base::crypto::Digest code_of(const HelloBytes& caller, const HelloBytes& answerer) const;

  Hello mine_;
  std::string secret_;
  std::string key_;  ///< makes and checks nonces; random, and held only here
  base::Duration window_;
  std::set<std::pair<std::int64_t, std::uint64_t>> used_;  ///< time and random number of nonces, the oldest first
};

}  // namespace syncopate::server::rpc
