// A stranger's side of the handshake, byte by byte as docs/transport.md has it; no other file knows them.
// alone.
#pragma once

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <string>

#include "transport/stranger.hpp"

namespace syncopate::transport::test::hello {

constexpr std::size_t kHelloBytes = 96, kProofBytes = 32;
constexpr std::size_t kAnswerBytes = kHelloBytes + kProofBytes;  ///< what a caller hears after its first words
constexpr std::string_view kWelcome = "W";                       ///< what it hears after its last ones
constexpr char kCaller = 'C', kAnswerer = 'A';

/// A hello as a test wants it; the random bytes are the same in all.
struct Fields {
  std::uint64_t group = 0;
  std::int32_t from = 1, to = 0;
  std::uint8_t purpose = 3;  ///< data
  std::uint32_t stream = 0;
  char role = kCaller;
  std::string magic = "SYNCOPTE";
  std::uint16_t protocol = 1;
  std::string version{syncopate::version()};

  [[nodiscard]] std::string bytes() const {
    std::string padded = version;
    padded.resize(16);
    Written all;
    all.raw(magic).number(protocol).number(purpose).raw({&role, 1}).number(std::uint32_t{0}).raw(padded);
    all.number(group).number(from).number(to).number(stream).raw(std::string(12, '\0')).raw(std::string(32, 'n'));
    return all.bytes;
  }
};

inline std::string code(char role, const std::string& callers_hello, const std::string& answerers_hello,
                        const std::string& secret) {
  const std::string text = role + callers_hello + answerers_hello;
  std::string made(kProofBytes, '\0');
  unsigned int size = 0;
  ::HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(made.data()), &size);
  return made;
}

/// What a caller says first.
inline std::string first_words(const Fields& mine, const std::string& /*secret*/ = {}) { return mine.bytes(); }
/// What it says to this answer.
inline std::string last_words(const Fields& mine, const std::string& answer, const std::string& secret = {}) {
  return code(kCaller, mine.bytes(), answer.substr(0, kHelloBytes), secret);
}
/// What an answerer says to a caller's first words.
inline std::string answer_to(const std::string& first, Fields mine, const std::string& secret = {}) {
  mine.role = kAnswerer;
  return mine.bytes() + code(kAnswerer, first.substr(0, kHelloBytes), mine.bytes(), secret);
}

}  // namespace syncopate::transport::test::hello
