// The exceptions of Syncopate: one class per kind of error.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace syncopate {

/// Where something failed. Ranks are -1 and texts empty where they do not apply.
struct Where {
  int rank = -1;          ///< the rank that throws
  int peer = -1;          ///< the rank that caused the error, whichever rank noticed it
  std::string operation;  ///< the operation that failed, e.g. "allreduce f32 x 1024 sum"
  std::string tensor;     ///< the name given to the operation, or the gradient's name
};

/// The kinds of errors. One table has the name (in messages, JSON and on the wire) and the exit code of each.
enum class ErrorKind : std::uint8_t {
  misuse,
  peer_lost,
  timeout,
  mismatch,
  remote_failure,
  corrupt,
  unauthorized,
  not_finite,
  system_failure
};
inline constexpr ErrorKind kErrorKinds[] = {
    ErrorKind::misuse,       ErrorKind::peer_lost,      ErrorKind::timeout,
    ErrorKind::mismatch,     ErrorKind::remote_failure, ErrorKind::corrupt,
    ErrorKind::unauthorized, ErrorKind::not_finite,     ErrorKind::system_failure};
[[nodiscard]] std::string_view name_of(ErrorKind kind) noexcept;  ///< the name of the exception: "PeerLost"
[[nodiscard]] int exit_code_of(ErrorKind kind) noexcept;  ///< of a program that the error ends: 2 for misuse, else 1

/// Base of everything Syncopate throws.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, Where where = {})
      : std::runtime_error(message), kind_(kind), where_(std::move(where)) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] const Where& where() const noexcept { return where_; }

 private:
  ErrorKind kind_;
  Where where_;
};

/// Throws the exception of that kind.
[[noreturn]] void raise_error(ErrorKind kind, const std::string& message, Where where = {});

/// The exception of one kind.
template <ErrorKind kKind>
class ErrorOf final : public Error {
 public:
  explicit ErrorOf(const std::string& message, Where where = {}) : Error(kKind, message, std::move(where)) {}
};

/// The caller broke a contract; the message names the allowed values. Nothing has been changed or sent, with one
/// exception: a gradient that never became ready aborts the group, because the other ranks already wait for it. They
/// throw RemoteFailure with the same text.
using Misuse = ErrorOf<ErrorKind::misuse>;

/// A rank of the group died, sent no heartbeats, or left while others still needed it.
using PeerLost = ErrorOf<ErrorKind::peer_lost>;

/// A wait reached its deadline although every rank is alive.
using Timeout = ErrorOf<ErrorKind::timeout>;

/// Ranks called different operations, or the same one with different type, count, root or tensor name.
using Mismatch = ErrorOf<ErrorKind::mismatch>;

/// Another rank failed on its own (an exception, a gradient that never became ready) and aborted the group.
using RemoteFailure = ErrorOf<ErrorKind::remote_failure>;

/// Bytes from the wire or from a file are not a valid message or document.
using Corrupt = ErrorOf<ErrorKind::corrupt>;

/// A peer did not prove that it knows the job's secret, or this rank did not.
using Unauthorized = ErrorOf<ErrorKind::unauthorized>;

/// A value is not finite, and the program asked to end in this case.
using NotFinite = ErrorOf<ErrorKind::not_finite>;

/// The operating system refused a request, for example for a socket, a file or an address.
using SystemFailure = ErrorOf<ErrorKind::system_failure>;

}  // namespace syncopate
