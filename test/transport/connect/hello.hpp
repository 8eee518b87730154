// A stranger's side of the handshake, byte by byte as in docs/transport.md; no other file depends on these bytes.
#pragma once

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <string>

#include "transport/stranger.hpp"

namespace syncopate::transport::test::hello {

constexpr std::size_t kHelloBytes = 96, kProofBytes = 32;
constexpr std::size_t kAnswerBytes = kHelloBytes;  ///< a caller receives them after its hello
constexpr char kCaller = 'C', kAnswerer = 'A';
/// The answer to a caller that has not proved the secret.
inline const std::string kRefusal(kProofBytes, '\0');

/// A hello with the fields that a test sets; the random bytes are equal in all.
struct Fields {
  std::uint64_t group = 0;
  std::int32_t from = 1, to = 0;
  std::uint8_t purpose = 3;  ///< data
  std::uint32_t stream = 0;
  char role = kCaller;
  std::string magic = "SYNCOPTE";
  std::uint16_t protocol = 3;
  std::string version{syncopate::version()};
  std::uint8_t tls = 0;
  std::string meeting = std::string(32, '\0');  ///< digest of the rendezvous: not a part of the hello

  [[nodiscard]] std::string bytes() const {
    std::string padded = version;
    padded.resize(16);
    Written all;
    all.raw(magic).number(protocol).number(purpose).raw({&role, 1}).number(std::uint32_t{0}).raw(padded);
    all.number(group).number(from).number(to).number(stream).number(tls).raw(std::string(11, '\0'));
    all.raw(std::string(32, 'n'));
    return all.bytes;
  }
};

inline std::string code(char role, const std::string& meeting, const std::string& hellos, const std::string& secret) {
  const std::string text = role + meeting + hellos;
  std::string made(kProofBytes, '\0');
  unsigned int size = 0;
  ::HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(made.data()), &size);
  return made;
}

/// The first bytes of a caller.
inline std::string first_words(const Fields& mine) { return mine.bytes(); }
/// A caller's answer to the hello `answer`.
inline std::string last_words(const Fields& mine, const std::string& answer, const std::string& secret = {}) {
  return code(kCaller, mine.meeting, mine.bytes() + answer, secret);
}
/// The last bytes that an accepted caller receives.
inline std::string welcome(const Fields& mine, const std::string& answer, const std::string& secret = {}) {
  return code(kAnswerer, mine.meeting, mine.bytes() + answer, secret);
}

/// An answerer's hello.
inline std::string answer_by(Fields mine) {
  mine.role = kAnswerer;
  return mine.bytes();
}
/// An answerer's last bytes to a caller with the right proof.
inline std::string welcome_by(const Fields& mine, const std::string& first, const std::string& secret) {
  return code(kAnswerer, mine.meeting, first + answer_by(mine), secret);
}

}  // namespace syncopate::transport::test::hello
