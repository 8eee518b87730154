// Channel: the bytes of one connection. All connection input and output passes here, plain or under TLS.
#include "transport/socket/channel.hpp"

#include <cerrno>
#include <cstring>

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

iovec piece_of(std::span<const std::byte> bytes) noexcept {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
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

}  // namespace syncopate::transport::socket
