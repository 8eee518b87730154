// Channel: the bytes of one connection. All connection input and output passes here: the place where TLS will wrap.
#include "transport/socket/channel.hpp"

#include <cerrno>
#include <cstring>

namespace syncopate::transport::socket {

namespace {

Moved outcome_of(ssize_t result, bool reading) noexcept {
  if (result > 0) return {Moved::Outcome::some, static_cast<std::size_t>(result), 0};
  if (result == 0) return {reading ? Moved::Outcome::closed : Moved::Outcome::nothing_now, 0, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {Moved::Outcome::closed, 0, errno};
}

msghdr message_of(std::span<iovec> pieces) noexcept {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return message;
}

}  // namespace

Moved Channel::read(std::span<iovec> pieces) noexcept {
  msghdr message = message_of(pieces);
  return outcome_of(::recvmsg(number(), &message, MSG_DONTWAIT), true);
}

Moved Channel::write(std::span<iovec> pieces) noexcept {
  msghdr message = message_of(pieces);
  return outcome_of(::sendmsg(number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL), false);
}

Moved Channel::read(std::span<std::byte> bytes) noexcept {
  return outcome_of(::recv(number(), bytes.data(), bytes.size(), MSG_DONTWAIT), true);
}

Moved Channel::write(std::span<const std::byte> bytes) noexcept {
  return outcome_of(::send(number(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL), false);
}

// Linux looks again when the mark moves, and announces less when the socket's memory or its window runs out: a mark can
// delay a wake-up, never lose it.
void Channel::announce_from(std::size_t bytes) noexcept {
  if (bytes == announced_from_) return;
  announced_from_ = bytes;
  const int mark = static_cast<int>(bytes);
  ::setsockopt(number(), SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
}

std::string reason_of(const Moved& moved) {
  return moved.error == 0 ? "the connection was closed" : std::strerror(moved.error);
}

}  // namespace syncopate::transport::socket
