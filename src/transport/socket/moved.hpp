// Moved: what one attempt to move bytes over a connection came to.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>

namespace syncopate::transport::socket {

struct Moved {
  enum class Outcome : unsigned char { some, nothing_now, closed };
  Outcome outcome = Outcome::nothing_now;
  std::size_t bytes = 0;
  int error = 0;      ///< why it is closed: an errno, kForged, kCutOff; 0 when the other end closed it in order
  bool more = false;  ///< the next attempt may move bytes; else an event of the poller announces when
};

/// Under TLS: bytes came that only a holder of the key could have made otherwise, or the other end says so of ours.
inline constexpr int kForged = EBADMSG;
/// Under TLS: the bytes end, but the other end did not say so.
inline constexpr int kCutOff = ENODATA;

/// How many bytes an attempt asks for.
[[nodiscard]] inline std::size_t bytes_of(std::span<const iovec> pieces) noexcept {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

/// "the connection was closed", or what `moved.error` says.
[[nodiscard]] std::string reason_of(const Moved& moved);

}  // namespace syncopate::transport::socket
