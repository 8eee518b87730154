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

/// The caller broke a contract; the message names the allowed values. Nothing has been changed or sent, with one
/// exception: a gradient that never became ready aborts the group, because the other ranks already wait for it. They
/// throw RemoteFailure with the same text.
class Misuse final : public Error {
 public:
  explicit Misuse(const std::string& message, Where where = {}) : Error(ErrorKind::misuse, message, std::move(where)) {}
};

/// A rank of the group died, sent no heartbeats, or left while others still needed it.
class PeerLost final : public Error {
 public:
  explicit PeerLost(const std::string& message, Where where = {})
      : Error(ErrorKind::peer_lost, message, std::move(where)) {}
};

/// A wait reached its deadline although every rank is alive.
class Timeout final : public Error {
 public:
  explicit Timeout(const std::string& message, Where where = {})
      : Error(ErrorKind::timeout, message, std::move(where)) {}
};

/// Ranks called different operations, or the same one with different type, count, root or tensor name.
class Mismatch final : public Error {
 public:
  explicit Mismatch(const std::string& message, Where where = {})
      : Error(ErrorKind::mismatch, message, std::move(where)) {}
};

/// Another rank failed on its own (an exception, a gradient that never became ready) and aborted the group.
class RemoteFailure final : public Error {
 public:
  explicit RemoteFailure(const std::string& message, Where where = {})
      : Error(ErrorKind::remote_failure, message, std::move(where)) {}
};

/// Bytes from the wire or from a file are not a valid message or document.
class Corrupt final : public Error {
 public:
  explicit Corrupt(const std::string& message, Where where = {})
      : Error(ErrorKind::corrupt, message, std::move(where)) {}
};

/// A peer did not prove that it knows the job's secret, or this rank did not.
class Unauthorized final : public Error {
 public:
  explicit Unauthorized(const std::string& message, Where where = {})
      : Error(ErrorKind::unauthorized, message, std::move(where)) {}
};

/// A value is not finite, and the program asked to end in this case.
class NotFinite final : public Error {
 public:
  explicit NotFinite(const std::string& message, Where where = {})
      : Error(ErrorKind::not_finite, message, std::move(where)) {}
};

/// The operating system refused a request, for example for a socket, a file or an address.
class SystemFailure final : public Error {
 public:
  explicit SystemFailure(const std::string& message, Where where = {})
      : Error(ErrorKind::system_failure, message, std::move(where)) {}
};

}  // namespace syncopate
