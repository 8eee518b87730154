// The errors of Syncopate: one for a broken contract, one for each way in which the world can fail.
#pragma once

#include <stdexcept>
#include <string>

namespace syncopate {

/// Where something failed. Ranks are -1 and texts empty where they do not apply.
struct Where {
  int rank = -1;          ///< the rank on which the call was made that throws
  int peer = -1;          ///< the rank to blame, whoever noticed it
  std::string operation;  ///< what that call was about, e.g. "allreduce f32 x 1024 sum"
  std::string tensor;     ///< the name given to the operation, or the gradient's
};

/// Base of everything Syncopate throws. `kind()` is the name of the most derived class.
class Error : public std::runtime_error {
 public:
  Error(const char* kind, const std::string& message, Where where = {})
      : std::runtime_error(message), kind_(kind), where_(std::move(where)) {}
  [[nodiscard]] const char* kind() const noexcept { return kind_; }
  [[nodiscard]] const Where& where() const noexcept { return where_; }

 private:
  const char* kind_;
  Where where_;
};

/// The caller broke a contract; the message names the allowed values. Nothing has been changed or sent.
class Misuse final : public Error {
 public:
  explicit Misuse(const std::string& message, Where where = {}) : Error("Misuse", message, std::move(where)) {}
};

/// A rank of the group died, fell silent, or left while others still needed it.
class PeerLost final : public Error {
 public:
  explicit PeerLost(const std::string& message, Where where = {}) : Error("PeerLost", message, std::move(where)) {}
};

/// A wait reached its deadline although every rank is alive.
class Timeout final : public Error {
 public:
  explicit Timeout(const std::string& message, Where where = {}) : Error("Timeout", message, std::move(where)) {}
};

/// Ranks called different operations, or the same one with different type, count, root or tensor name.
class Mismatch final : public Error {
 public:
  explicit Mismatch(const std::string& message, Where where = {}) : Error("Mismatch", message, std::move(where)) {}
};

/// Another rank failed by itself (an exception, a gradient that never became ready) and told the group.
class RemoteFailure final : public Error {
 public:
  explicit RemoteFailure(const std::string& message, Where where = {})
      : Error("RemoteFailure", message, std::move(where)) {}
};

/// Bytes from the wire or from a file that cannot be what they claim to be.
class Corrupt final : public Error {
 public:
  explicit Corrupt(const std::string& message, Where where = {}) : Error("Corrupt", message, std::move(where)) {}
};

/// A peer could not prove that it knows the job's secret, or this rank could not.
class Unauthorized final : public Error {
 public:
  explicit Unauthorized(const std::string& message, Where where = {})
      : Error("Unauthorized", message, std::move(where)) {}
};

/// The operating system refused: a socket, a file, an address.
class SystemFailure final : public Error {
 public:
  explicit SystemFailure(const std::string& message, Where where = {})
      : Error("SystemFailure", message, std::move(where)) {}
};

}  // namespace syncopate
