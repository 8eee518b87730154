// Proof: how the two ends of a stream prove to each other that they have the job's secret, as pure functions of bytes.
#include "server/rpc/proof.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "syncopate/error.hpp"
#include "syncopate/version.hpp"

namespace syncopate::server::rpc {

using base::crypto::Digest, base::crypto::mac_of;

namespace {

// Hello, little-endian: 0 magic (8)  8 u16 protocol  12 u32 silence in ms  16 version (16)  32 nonce (32)  64 identity
// (64)  128 job (64) An answerer's nonce:  32 i64 nanoseconds of its clock  40 u64 random  48 code of the rest (16)
constexpr char kMagic[] = "SYNCSTRM";
constexpr std::size_t kMagicBytes = 8, kVersionAt = 16, kVersionBytes = 16, kNonceAt = 32, kNonceBytes = 32;
constexpr std::size_t kRandomAt = 40, kCodeAt = 48, kCodeBytes = 16, kIdentityAt = 64, kJobAt = 128;
// The purposes of a code; none is a purpose of transport/connect, which uses the same secret.
constexpr auto kCallerProves = std::byte{'w'}, kAnswererProves = std::byte{'s'}, kNonceCode = std::byte{'n'};

bool is_printable(char letter) noexcept { return letter >= ' ' && letter <= '~'; }

void write_text(HelloBytes& bytes, std::size_t at, std::string_view text, std::size_t most) {
  std::memcpy(bytes.data() + at, text.data(), std::min(text.size(), most));
}

std::string read_text(base::ConstBytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    if (byte == std::byte{0}) break;
    const char letter = static_cast<char>(byte);
    text += is_printable(letter) ? letter : '?';
  }
  return text;
}

void draw(base::Bytes bytes) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) != 1)
    throw SystemFailure("the system returned no random bytes");
}

HelloBytes without_nonce(const Hello& hello) {
  HelloBytes bytes{};
  std::memcpy(bytes.data(), kMagic, kMagicBytes);
  base::put(bytes, 8, hello.protocol);
  base::put(bytes, 12, static_cast<std::uint32_t>(hello.silence / std::chrono::milliseconds(1)));
  write_text(bytes, kVersionAt, hello.version.empty() ? version() : hello.version, kVersionBytes - 1);
  write_text(bytes, kIdentityAt, hello.identity, kMostNameBytes);
  write_text(bytes, kJobAt, hello.job, kMostNameBytes);
  return bytes;
}

Digest code_over(const std::string& secret, std::byte purpose, const HelloBytes& caller, const HelloBytes& answerer) {
  std::array<std::byte, 1 + 2 * kHelloBytes> text;
  text[0] = purpose;
  std::ranges::copy(answerer, std::ranges::copy(caller, text.begin() + 1).out);
  return mac_of(secret, text);
}

}  // namespace

bool is_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kMostNameBytes && std::ranges::all_of(name, is_printable);
}

HelloBytes say_hello(const Hello& hello) {
  HelloBytes bytes = without_nonce(hello);
  draw(base::Bytes(bytes).subspan(kNonceAt, kNonceBytes));
  return bytes;
}

std::optional<Hello> read_hello(base::ConstBytes bytes) {
  if (bytes.size() != kHelloBytes || std::memcmp(bytes.data(), kMagic, kMagicBytes) != 0) return std::nullopt;
  return Hello{.protocol = base::get<std::uint16_t>(bytes, 8),
               .version = read_text(bytes.subspan(kVersionAt, kVersionBytes)),
               .silence = std::chrono::milliseconds(base::get<std::uint32_t>(bytes, 12)),
               .identity = read_text(bytes.subspan(kIdentityAt, kMostNameBytes)),
               .job = read_text(bytes.subspan(kJobAt, kMostNameBytes))};
}

Digest prove(const std::string& secret, Role role, const HelloBytes& caller, const HelloBytes& answerer) {
  return code_over(secret, role == Role::caller ? kCallerProves : kAnswererProves, caller, answerer);
}

Challenger::Challenger(const Hello& mine, std::string secret, base::Duration window)
    : mine_(mine), secret_(std::move(secret)), key_(kNonceBytes, '\0'), window_(window) {
  mine_.job.clear();
  draw(std::as_writable_bytes(std::span(key_)));
}

Digest Challenger::code_of(const HelloBytes& caller, const HelloBytes& answerer) const {
  HelloBytes text = answerer;
  std::fill_n(text.begin() + kCodeAt, kCodeBytes, std::byte{0});
  return code_over(key_, kNonceCode, caller, text);
}

HelloBytes Challenger::challenge(const HelloBytes& caller, base::Time now) const {
  HelloBytes bytes = without_nonce(mine_);
  base::put(bytes, kNonceAt, std::int64_t{now.time_since_epoch().count()});
  draw(base::Bytes(bytes).subspan(kRandomAt, sizeof(std::uint64_t)));
  const Digest code = code_of(caller, bytes);
  std::copy_n(code.begin(), kCodeBytes, bytes.begin() + kCodeAt);
  return bytes;
}

Challenger::Verdict Challenger::check(const HelloBytes& caller, const HelloBytes& answerer, base::ConstBytes proof,
                                      base::Time now) {
  using base::crypto::is_same;
  const Digest code = code_of(caller, answerer);
  if (!is_same(base::ConstBytes(code).first(kCodeBytes), base::ConstBytes(answerer).subspan(kCodeAt, kCodeBytes)))
    return Verdict::stale;  // of another process, perhaps of the previous server
  if (!is_same(prove(secret_, Role::caller, caller, answerer), proof)) return Verdict::wrong;
  const auto made = base::get<std::int64_t>(answerer, kNonceAt);
  const std::int64_t oldest = (now - window_).time_since_epoch().count();
  used_.erase(used_.begin(), used_.lower_bound({oldest, 0}));
  const bool is_fresh = made >= oldest && used_.emplace(made, base::get<std::uint64_t>(answerer, kRandomAt)).second;
  return is_fresh ? Verdict::right : Verdict::stale;
}

}  // namespace syncopate::server::rpc
