// Moved: the result of one attempt to move bytes over a connection.
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
  int error = 0;      ///< why it is closed: an errno, kForged, kCutOff; 0 if the other end closed it in order
  bool more = false;  ///< the next attempt may move bytes; else a poller event announces when
};

/// Under TLS: bytes failed authentication here, or the other end reported that ours did.
inline constexpr int kForged = EBADMSG;
/// Under TLS: the bytes end without a closing message of the other end.
inline constexpr int kCutOff = ENODATA;

/// Number of bytes that an attempt requests.
[[nodiscard]] inline std::size_t bytes_of(std::span<const iovec> pieces) noexcept {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

/// "the connection was closed", or the text of `moved.error`.
[[nodiscard]] std::string reason_of(const Moved& moved);

}  // namespace syncopate::transport::socket
