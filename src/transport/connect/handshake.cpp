// Handshake: both ends of a new connection identify themselves and prove the job's secret before any other data.
#include "transport/connect/handshake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/crypto/secret.hpp"
#include "syncopate/error.hpp"
#include "syncopate/version.hpp"

namespace syncopate::transport::connect {

using base::crypto::Digest, base::crypto::is_same, base::crypto::mac_of;

namespace {

// A sealed text: u8 whether a code follows the text (0 or 1), the text, the code (32 bytes).
constexpr char kOpen = 0, kSealed = 1;

Digest code_of(std::string_view text, const Speaker& of, const std::string& secret) {
  std::string all = "S";
  for (const std::int32_t number : {of.rank, of.size})
    all.append(reinterpret_cast<const char*>(&number), sizeof number);
  all.append(text);
  return mac_of(secret, std::as_bytes(std::span(all)));
}

[[noreturn]] void refuse(int rank, std::string_view why) {
  throw Unauthorized(fmt::format("the text of rank {} at the rendezvous {}", rank, why), {.peer = rank});
}

}  // namespace

std::string seal(const std::string& text, const Speaker& of, const std::string& secret) {
  if (secret.empty()) return kOpen + text;
  const Digest code = code_of(text, of, secret);
  return kSealed + text + std::string(reinterpret_cast<const char*>(code.data()), code.size());
}

std::string unseal(const std::string& sealed, const Speaker& of, const std::string& secret) {
  const bool is_sealed = sealed.starts_with(kSealed);
  const std::size_t least = is_sealed ? 1 + Digest{}.size() : 1;
  if (sealed.size() < least || (!is_sealed && sealed.front() != kOpen))
    throw Corrupt(fmt::format("the rendezvous text of rank {} is malformed", of.rank), {.peer = of.rank});
  if (!is_sealed && !secret.empty())
    refuse(of.rank, "is not sealed with the job's secret: give every rank the same SYNCOPATE_SECRET_FILE");
  if (is_sealed && secret.empty())
    refuse(of.rank, "is sealed with a secret that this rank lacks: give every rank the same SYNCOPATE_SECRET_FILE");
  const std::string text = sealed.substr(1, sealed.size() - least);
  if (is_sealed && !is_same(code_of(text, of, secret), std::as_bytes(std::span(sealed)).last(Digest{}.size())))
    refuse(of.rank,
           "has a wrong code: that rank has another secret, or the text was changed (which users may write to the "
           "rendezvous?)");
  return text;
}

using base::crypto::is_same, base::crypto::mac_of;

namespace {

// Hello, little-endian: 0 magic (8)  8 u16 protocol  10 u8 purpose  11 u8 role  16 version (16, zero-padded)
//                      32 u64 group  40 i32 from  44 i32 to  48 u32 stream  52 u8 tls  64 nonce (32)
constexpr char kMagic[] = "SYNCOPTE";
constexpr std::size_t kMagicBytes = 8, kVersionAt = 16, kVersionBytes = 16, kNonceAt = 64, kNonceBytes = 32;
constexpr auto kCallerRole = std::byte{'C'}, kAnswererRole = std::byte{'A'}, kTlsKey = std::byte{'T'};

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
  base::put(bytes, 52, static_cast<std::uint8_t>(hello.tls));
}

/// The text up to its first zero. Unprintable bytes become '?', because the text may be logged.
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
          .stream = base::get<std::uint32_t>(bytes, 48),
          .tls = base::get<std::uint8_t>(bytes, 52) != 0};
}

/// Why the other end, which has the secret, is not the one that this end wants, or wants another than this end.
std::string misplaced(const Hello& mine, const Hello& theirs, bool is_caller) {
  const bool is_server = mine.purpose >= Purpose::worker;
  const char* const whole = is_server ? "job" : "group";
  const auto kind = is_server ? "server" : "rank";
  const int wanted = is_caller ? mine.to : theirs.to, found = is_caller ? theirs.from : mine.from;
  if (mine.group != theirs.group)
    return is_caller ? fmt::format("it is {} {} of another {}", kind, found, whole)
                     : fmt::format("it looks for a {} of another {}", kind, whole);
  return is_caller ? fmt::format("it is {} {}, not {} {}", kind, found, kind, wanted)
                   : fmt::format("it looks for {} {}, this is {} {}", kind, wanted, kind, found);
}

constexpr const char* setting(bool tls) noexcept { return tls ? "on" : "off"; }

constexpr const char* kUnproved =
    "it does not know this job's secret, or received other texts at the rendezvous, or something between the two "
    "ends answers in its place";

}  // namespace

Handshake::Handshake(socket::Channel channel, bool caller, const Hello& mine)
    : channel_(std::move(channel)), caller_(caller), mine_(mine) {
  if (mine_.version.empty()) mine_.version = version();
}

Handshake Handshake::call(socket::Channel channel, const Hello& mine, std::string secret, const Digest& meeting) {
  Handshake made(std::move(channel), true, mine);
  made.secret_ = std::move(secret);
  made.meeting_ = meeting;
  made.say_hello();
  made.send(Step::send_hello, made.my_hello_);
  return made;
}

Handshake Handshake::answer(socket::Channel channel, const Hello& mine, std::string secret, const Digest& meeting) {
  Handshake made(std::move(channel), false, mine);
  made.secret_ = std::move(secret);
  made.meeting_ = meeting;
  made.expect(Step::read_hello, kHelloBytes);
  return made;
}

void Handshake::say_hello() {
  write_hello(my_hello_, mine_, caller_);
  channel_.socket().system().draw(base::Bytes(my_hello_).subspan(kNonceAt, kNonceBytes));
}

Handshake::State Handshake::advance() {
  const auto is_under_way = [&] { return state_ == State::reading || state_ == State::writing; };
  while (is_under_way() && (step_ == Step::negotiate_tls ? negotiate_tls() : move())) stepped();
  return state_;
}

/// Whether all bytes of this step have moved.
bool Handshake::move() {
  const auto rest = base::Bytes(buffer_).first(wanted_).subspan(moved_);
  const socket::Moved moved = state_ == State::reading ? channel_.read(rest) : channel_.write(base::ConstBytes(rest));
  if (moved.outcome == socket::Moved::Outcome::closed) {
    lose(moved);
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

/// Decides whether the connection is encrypted from here on.
bool Handshake::negotiate_tls() {
  const socket::Moved moved = channel_.negotiate();
  if (moved.outcome == socket::Moved::Outcome::closed) lose(moved);
  if (moved.outcome == socket::Moved::Outcome::nothing_now)
    state_ = channel_.has_unsent() ? State::writing : State::reading;
  return moved.outcome == socket::Moved::Outcome::some;
}

void Handshake::stepped() {
  switch (step_) {
    case Step::send_hello:
      if (!caller_ && cause_ == Cause::version) return finish();
      return caller_ ? expect(Step::read_hello, kHelloBytes) : expect(Step::read_proof, kProofBytes);
    case Step::read_hello:
      return judge_hello();
    case Step::read_proof:
      return judge_proof();
    case Step::send_proof:
      return caller_ && cause_ == Cause::none ? proceed() : finish();
    case Step::negotiate_tls:
      return caller_ ? expect(Step::read_proof, kProofBytes) : send(Step::send_proof, code_as(kAnswererRole));
  }
}

void Handshake::judge_hello() {
  std::copy_n(buffer_.begin(), kHelloBytes, peer_hello_.begin());
  peer_ = read_hello(peer_hello_);
  const bool role_fits = peer_hello_[11] == (caller_ ? kAnswererRole : kCallerRole);
  if (!role_fits)
    return refuse(Cause::stranger, "it answered with its own side of the protocol (connected to itself?)");
  if (peer_.protocol != mine_.protocol || peer_.version != mine_.version) {
    cause_ = Cause::version;
    reason_ = fmt::format(
        "it runs Syncopate {} (protocol {}), this is Syncopate {} (protocol {}); use one version everywhere",
        peer_.version, peer_.protocol, mine_.version, mine_.protocol);
  } else if (peer_.tls != mine_.tls) {
    cause_ = Cause::tls;
    reason_ =
        fmt::format("it has TLS {}, this end has it {}; set SYNCOPATE_TLS to on or off, the same in every process",
                    setting(peer_.tls), setting(mine_.tls));
  }
  if (caller_) return cause_ == Cause::version ? finish() : send(Step::send_proof, code_as(kCallerRole));
  mine_.purpose = peer_.purpose;
  mine_.stream = peer_.stream;
  mine_.to = peer_.from;
  say_hello();
  send(Step::send_hello, my_hello_);
}

void Handshake::judge_proof() {
  const bool is_right =
      is_same(code_as(caller_ ? kAnswererRole : kCallerRole), base::ConstBytes(buffer_).first(kProofBytes));
  if (!is_right) {
    cause_ = Cause::unauthorized;
    reason_ = kUnproved;
    return caller_ ? finish() : send(Step::send_proof, Digest{});  // zeros: the caller learns of it, and gets no proof
  }
  if (cause_ == Cause::tls) return finish();
  const Hello &caller = caller_ ? mine_ : peer_, &answerer = caller_ ? peer_ : mine_;
  const bool is_meant = caller.group == answerer.group &&
                        (caller.to == answerer.from || (caller.to == kAnyone && caller.purpose >= Purpose::worker));
  if (!is_meant) {
    cause_ = Cause::stranger;
    reason_ = misplaced(mine_, peer_, caller_);
  }
  return caller_ ? finish() : proceed();
}

/// The caller's proof was sent, or was right. TLS begins only here: strangers never reach it.
void Handshake::proceed() {
  if (!mine_.tls)
    return caller_ ? expect(Step::read_proof, kProofBytes) : send(Step::send_proof, code_as(kAnswererRole));
  channel_.secure(code_as(kTlsKey), caller_ ? socket::TlsRole::client : socket::TlsRole::server);
  expect(Step::negotiate_tls, 0);
}

void Handshake::finish() { state_ = cause_ == Cause::none ? State::done : State::refused; }

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

void Handshake::lose(const socket::Moved& moved) {
  const bool was_connected = moved.error == 0 || moved.error == ECONNRESET || moved.error == EPIPE;
  if (moved.error == socket::kForged) return refuse(Cause::unauthorized, kUnproved);
  refuse(was_connected ? Cause::cut_off : Cause::unreachable, socket::reason_of(moved));
}

void Handshake::refuse(Cause cause, std::string reason) {
  state_ = State::refused;
  cause_ = cause;
  reason_ = std::move(reason);
}

Digest Handshake::code_as(std::byte role) const {
  std::array<std::byte, 1 + kProofBytes + 2 * kHelloBytes> text;
  text[0] = role;
  auto end = std::ranges::copy(meeting_, text.begin() + 1).out;
  end = std::ranges::copy(callers_hello(), end).out;
  std::ranges::copy(answerers_hello(), end);
  return mac_of(secret_, text);
}

}  // namespace syncopate::transport::connect
