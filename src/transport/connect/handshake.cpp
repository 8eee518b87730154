// Handshake: both ends of a new connection say who they are and prove the job's secret before anything else is parsed.
#include "transport/connect/handshake.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/require.hpp"
#include "syncopate/version.hpp"

namespace syncopate::transport::connect {

namespace {

// Hello, little-endian: 0 magic (8)  8 u16 protocol  10 u8 purpose  11 u8 role  16 version (16, zero-padded)
//                      32 u64 group  40 i32 from  44 i32 to  48 u32 stream  64 nonce (32)
constexpr char kMagic[] = "SYNCOPTE";
constexpr std::size_t kMagicBytes = 8, kVersionAt = 16, kVersionBytes = 16, kNonceAt = 64, kNonceBytes = 32;
constexpr std::size_t kMostSecretBytes = 4096;
constexpr auto kCallerRole = std::byte{'C'}, kAnswererRole = std::byte{'A'};
constexpr std::array kWelcome{std::byte{'W'}};

template <class Array>
void write_hello(Array& bytes, const Hello& hello, bool caller) {
  std::memcpy(bytes.data(), kMagic, kMagicBytes);
  base::put(bytes, 8, hello.protocol);
  base::put(bytes, 10, static_cast<std::uint8_t>(hello.purpose));
  bytes[11] = caller ? kCallerRole : kAnswererRole;
  std::memcpy(bytes.data() + kVersionAt, hello.version.data(), std::min(hello.version.size(), kVersionBytes - 1));
  base::put(bytes, 32, hello.group);
  base::put(bytes, 40, hello.from);
  base::put(bytes, 44, hello.to);
  base::put(bytes, 48, hello.stream);
}

/// The text up to its first zero; what is not printable is shown as '?', since it may end in a log.
std::string version_in(base::ConstBytes bytes) {
  std::string text;
  for (const std::byte byte : bytes.subspan(kVersionAt, kVersionBytes)) {
    if (byte == std::byte{0}) break;
    const char letter = static_cast<char>(byte);
    text += letter > ' ' && letter <= '~' ? letter : '?';
  }
  return text;
}

Hello read_hello(base::ConstBytes bytes) {
  return {.protocol = base::get<std::uint16_t>(bytes, 8),
          .version = version_in(bytes),
          .purpose = static_cast<Purpose>(base::get<std::uint8_t>(bytes, 10)),
          .group = base::get<std::uint64_t>(bytes, 32),
          .from = base::get<std::int32_t>(bytes, 40),
          .to = base::get<std::int32_t>(bytes, 44),
          .stream = base::get<std::uint32_t>(bytes, 48)};
}

}  // namespace

Handshake::Handshake(socket::Channel channel, bool caller, Hello mine, std::string secret)
    : channel_(std::move(channel)), caller_(caller), mine_(std::move(mine)), secret_(std::move(secret)) {
  if (mine_.version.empty()) mine_.version = version();
}

Handshake Handshake::call(socket::Channel channel, const Hello& mine, std::string secret) {
  Handshake made(std::move(channel), true, mine, std::move(secret));
  made.say_hello();
  made.send(Step::send_hello, made.my_hello_);
  return made;
}

Handshake Handshake::answer(socket::Channel channel, const Hello& mine, std::string secret) {
  Handshake made(std::move(channel), false, mine, std::move(secret));
  made.expect(Step::read_hello, kHelloBytes);
  return made;
}

void Handshake::say_hello() {
  write_hello(my_hello_, mine_, caller_);
  if (RAND_bytes(reinterpret_cast<unsigned char*>(my_hello_.data() + kNonceAt), kNonceBytes) != 1)
    throw SystemFailure("the system gives no random bytes");
}

Handshake::State Handshake::advance() {
  while ((state_ == State::reading || state_ == State::writing) && move()) stepped();
  return state_;
}

/// Whether all bytes of this step have moved.
bool Handshake::move() {
  const auto rest = base::Bytes(buffer_).first(wanted_).subspan(moved_);
  const socket::Moved moved = state_ == State::reading ? channel_.read(rest) : channel_.write(base::ConstBytes(rest));
  if (moved.outcome == socket::Moved::Outcome::closed) {
    const bool was_connected = moved.error == 0 || moved.error == ECONNRESET || moved.error == EPIPE;
    refuse(was_connected ? Cause::cut_off : Cause::unreachable, socket::reason_of(moved));
    return false;
  }
  moved_ += moved.bytes;
  // A caller of another kind is cut off at its first wrong byte, not after it has sent a whole hello.
  const std::size_t seen = std::min(moved_, kMagicBytes);
  if (step_ == Step::read_hello && std::memcmp(buffer_.data(), kMagic, seen) != 0) {
    refuse(Cause::stranger, "it does not speak this protocol");
    return false;
  }
  return moved_ == wanted_;
}

void Handshake::stepped() {
  switch (step_) {
    case Step::send_hello:
      return expect(Step::read_hello, kHelloBytes);
    case Step::read_hello:
      return judge_hello();
    case Step::read_proof:
      return judge_proof();
    case Step::read_welcome:
      if (buffer_[0] != kWelcome[0]) return refuse(Cause::stranger, "it does not say that this rank is welcome");
      [[fallthrough]];
    case Step::send_welcome:
      state_ = State::done;
      return;
    case Step::send_proof:
      if (caller_) {
        expect(Step::read_welcome, kWelcome.size());
      } else if (cause_ == Cause::version) {
        state_ = State::refused;
      } else {
        expect(Step::read_proof, kProofBytes);
      }
  }
}

void Handshake::judge_hello() {
  std::copy_n(buffer_.begin(), kHelloBytes, peer_hello_.begin());
  peer_ = read_hello(peer_hello_);
  const bool role_fits = peer_hello_[11] == (caller_ ? kAnswererRole : kCallerRole);
  const bool agreed = peer_.protocol == mine_.protocol && peer_.version == mine_.version;
  if (!role_fits)
    return refuse(Cause::stranger, "it answered with its own side of the protocol (connected to itself?)");
  if (!agreed)
    reason_ = fmt::format(
        "it runs Syncopate {} (protocol {}), this is Syncopate {} (protocol {}); use one version everywhere",
        peer_.version, peer_.protocol, mine_.version, mine_.protocol);
  if (caller_) {
    if (!agreed) return refuse(Cause::version, reason_);
    return expect(Step::read_proof, kProofBytes);
  }
  mine_.purpose = peer_.purpose;
  mine_.stream = peer_.stream;
  mine_.to = peer_.from;
  say_hello();
  if (!agreed) {
    cause_ = Cause::version;  // the caller is told our version in our hello, and gets no proof
    return send(Step::send_proof, my_hello_);
  }
  std::array<std::byte, kHelloBytes + kProofBytes> both;
  const Proof proof = proof_by(false);
  std::copy(proof.begin(), proof.end(), std::copy(my_hello_.begin(), my_hello_.end(), both.begin()));
  send(Step::send_proof, both);
}

void Handshake::judge_proof() {
  const Proof right = proof_by(!caller_);
  if (CRYPTO_memcmp(right.data(), buffer_.data(), kProofBytes) != 0)
    return refuse(Cause::unauthorized, "it does not know this job's secret");
  if (caller_) {
    if (peer_.from != mine_.to || peer_.group != mine_.group)
      return refuse(Cause::stranger, fmt::format("it is rank {} of another group", peer_.from));
    const Proof proof = proof_by(true);
    return send(Step::send_proof, proof);
  }
  if (peer_.to != mine_.from || peer_.group != mine_.group)
    return refuse(Cause::stranger, fmt::format("it looks for rank {} of another group", peer_.to));
  send(Step::send_welcome, kWelcome);
}

void Handshake::expect(Step step, std::size_t bytes) {
  step_ = step;
  state_ = State::reading;
  moved_ = 0;
  wanted_ = bytes;
}

void Handshake::send(Step step, base::ConstBytes bytes) {
  expect(step, bytes.size());
  state_ = State::writing;
  std::copy(bytes.begin(), bytes.end(), buffer_.begin());
}

void Handshake::refuse(Cause cause, std::string reason) {
  state_ = State::refused;
  cause_ = cause;
  reason_ = std::move(reason);
}

Handshake::Proof Handshake::proof_by(bool caller) const {
  std::array<std::byte, 1 + 2 * kHelloBytes> text;
  text[0] = caller ? kCallerRole : kAnswererRole;
  const HelloBytes& first = caller_ ? my_hello_ : peer_hello_;
  const HelloBytes& second = caller_ ? peer_hello_ : my_hello_;
  std::copy(second.begin(), second.end(), std::copy(first.begin(), first.end(), text.begin() + 1));
  Proof proof{};
  unsigned int size = kProofBytes;
  const auto* made = HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(proof.data()), &size);
  if (made == nullptr || size != kProofBytes) throw SystemFailure("the cryptographic library makes no HMAC-SHA256");
  return proof;
}

std::string read_secret(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  base::require(file.good(), "cannot read the secret file '{}'", path);
  std::error_code unknown;
  const auto others = std::filesystem::status(path, unknown).permissions() & std::filesystem::perms::others_all;
  base::require(unknown || others == std::filesystem::perms::none,
                "the secret file '{}' is open to every user of this host; make it yours alone: chmod 600 {}", path,
                path);
  std::string secret(kMostSecretBytes + 1, '\0');
  secret.resize(
      static_cast<std::size_t>(file.read(secret.data(), static_cast<std::streamsize>(secret.size())).gcount()));
  base::require(secret.size() <= kMostSecretBytes,
                "the secret in '{}' is longer than {} bytes; allowed: 16 to {} bytes", path, kMostSecretBytes,
                kMostSecretBytes);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  base::require(secret.size() >= 16, "the secret in '{}' has {} bytes; at least 16 are needed", path, secret.size());
  return secret;
}

}  // namespace syncopate::transport::connect
