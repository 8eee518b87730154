// Channels: moves the bytes of one connection, plain or under TLS, and length-prefixed messages.
#include "transport/socket/channel.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/bytes.hpp"
#include "base/require.hpp"

namespace syncopate::transport::socket {

namespace {

/// A short read emptied the socket, a short write filled it: the next change is a new event.
Moved outcome_of(ssize_t result, std::size_t wanted, bool reading) noexcept {
  const auto bytes = static_cast<std::size_t>(result);
  if (result > 0) return {Moved::Outcome::some, bytes, 0, bytes == wanted};
  if (result == 0) return {reading ? Moved::Outcome::closed : Moved::Outcome::nothing_now};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {Moved::Outcome::closed, 0, errno};
}

}  // namespace

Moved Channel::read(std::span<iovec> pieces) noexcept {
  if (tls_) return tls_->read(pieces);
  return outcome_of(socket_.system().receive(number(), pieces), bytes_of(pieces), true);
}

Moved Channel::write(std::span<iovec> pieces) noexcept {
  if (tls_) return tls_->write(pieces);
  return outcome_of(socket_.system().send(number(), pieces), bytes_of(pieces), false);
}

Moved Channel::read(std::span<std::byte> bytes) noexcept {
  iovec piece = piece_of(bytes);
  return read({&piece, 1});
}

Moved Channel::write(std::span<const std::byte> bytes) noexcept {
  iovec piece = piece_of(bytes);
  return write({&piece, 1});
}

// Linux checks again when the mark moves, and wakes earlier when the socket's memory or window runs out: a mark can
// delay a wake-up, never lose it. The kernel counts its own bytes: under TLS there are more than the awaited ones, but
// a part of them may already be here, in an incomplete record.
void Channel::announce_from(std::size_t bytes) noexcept {
  if (tls_) bytes = bytes > Tls::kMostHeldBack ? bytes - Tls::kMostHeldBack : 1;
  if (bytes == announced_from_) return;
  announced_from_ = bytes;
  socket_.system().set(number(), SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(bytes));
}

std::string reason_of(const Moved& moved) {
  switch (moved.error) {
    case 0:
      return "the connection was closed";
    case kForged:
      return "TLS found bytes that the other end did not send (they were changed on the path, or "
             "damaged)";
    case kCutOff:
      return "the connection was cut off: TLS received no closing message";
    default:
      return std::strerror(moved.error);
  }
}

namespace {
constexpr std::size_t kTailBytes = 4096;
/// A writer without pauses must not keep the reader from other connections.
constexpr std::size_t kBytesPerCall = std::size_t{60} << 10;
}  // namespace

FramedChannel::FramedChannel(Channel channel, std::size_t most_bytes)
    : channel_(std::move(channel)), most_bytes_(most_bytes), reader_(kTailBytes) {}

void FramedChannel::queue(std::string_view message) {
  base::require(message.size() <= most_bytes_, "a message has {} bytes; at most {} are allowed", message.size(),
                most_bytes_);
  const auto size = static_cast<std::uint32_t>(message.size());
  out_.append(reinterpret_cast<const char*>(&size), kPrefix);
  out_.append(message);
}

bool FramedChannel::flush() {
  while (!out_.empty()) {
    const Moved moved = channel_.write(std::as_bytes(std::span(out_)));
    if (moved.outcome == Moved::Outcome::closed) {
      reason_ = reason_of(moved);
      return false;
    }
    if (moved.outcome == Moved::Outcome::nothing_now) break;
    out_.erase(0, moved.bytes);
  }
  return true;
}

bool FramedChannel::read(std::vector<std::string>& messages) {
  const std::size_t before = messages.size();
  for (std::size_t bytes = 0; bytes < kBytesPerCall || channel_.has_unread();) {
    const Moved moved = channel_.read(reader_.pieces());
    if (moved.outcome == Moved::Outcome::closed) {
      if (messages.size() > before) return true;
      reason_ = reason_of(moved);
      return false;
    }
    bytes += moved.bytes;
    reader_.filled(moved.bytes);
    take_messages(messages);
    if (!moved.more) break;
  }
  return true;
}

void FramedChannel::take_messages(std::vector<std::string>& messages) {
  using Part = FrameReader<kPrefix>::Part;
  for (Part part = reader_.next(); part != Part::none; part = reader_.next()) {
    if (part == Part::frame) {
      messages.push_back(std::move(in_));
      continue;
    }
    const auto size = base::get<std::uint32_t>(reader_.header(), 0);
    if (size > most_bytes_) throw Corrupt(fmt::format("a message has {} bytes; the limit is {}", size, most_bytes_));
    in_.resize(size);
    reader_.place(std::as_writable_bytes(std::span(in_)));
  }
}

}  // namespace syncopate::transport::socket
