// Control: how the ranks of a group learn of each other's progress and failures, apart from the data they exchange.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "syncopate/error.hpp"

namespace syncopate::transport::membership {

/// A failure as it travels between ranks. Every rank throws the exception of its kind.
struct Failure {
  ErrorKind kind = ErrorKind::remote_failure;
  std::string message;
  Where where;
};

/// Throws the exception of that kind; RemoteFailure for the kinds that concern one rank only.
[[noreturn]] void raise(const Failure& failure);
/// The failure on rank `rank` that corresponds to an exception of this library, or any other.
[[nodiscard]] Failure failure_of(const std::exception& error, int rank);

/// Messages between two ranks have separate numbers from the operations that all ranks share: bit 63, sender, receiver,
/// and the message's sequence number on that pair. Ranks are below 32768.
[[nodiscard]] std::uint64_t message_number(int from, int to, std::uint64_t count) noexcept;
[[nodiscard]] constexpr bool is_message(std::uint64_t number) noexcept { return number >> 63 != 0; }
/// "operation 7", "message 3 from rank 0 to rank 1".
[[nodiscard]] std::string text_of_number(std::uint64_t number);

/// This rank's call of its operation number `number` (1, 2, ... per group).
struct OperationRecord {
  std::uint64_t number = 0;     ///< or a message_number
  std::uint64_t signature = 0;  ///< hash of collective, type, count, root, operation, algorithm and tensor name
  std::string text;             ///< the readable form: "allreduce f32 x 1024 sum 'fc1.weight'"
  std::uint64_t scope = 0;      ///< not 0: sub-groups run it separately, possibly with different sizes
  /// The hash that ranks compare if they exchange no data.
  [[nodiscard]] std::uint64_t common() const noexcept { return scope == 0 ? signature : scope; }
};

/// Thread-safe. One per rank and group.
class Control {
 public:
  virtual ~Control() = default;
  /// The first reported failure of any rank; every later call of the group throws it.
  [[nodiscard]] virtual std::optional<Failure> failure() const = 0;
  /// Cheap form of `failure().has_value()`: one atomic load.
  [[nodiscard]] virtual bool failed() const noexcept = 0;
  /// Spreads the failure to every rank. The first failure that a rank learns of stays; later ones are dropped.
  virtual void report(Failure failure) = 0;
  /// This rank begins an operation. Neighbours compare records, so that ranks detect different operations even if they
  /// exchange no data. Messages are only recorded, for `mismatch`.
  virtual void began(const OperationRecord& record) = 0;
  /// Data from `peer` for operation `number` does not fit this rank's call: reports a Mismatch that names both ranks'
  /// operations (it asks the peer for its own).
  virtual void mismatch(int peer, std::uint64_t number) = 0;
  /// Whether that rank left the group in order.
  [[nodiscard]] virtual bool has_left(int /*peer*/) const { return false; }
  /// How long a lost link waits for control to bring the cause: a peer closes its links when the group fails elsewhere.
  [[nodiscard]] virtual base::Duration grace() const { return std::chrono::milliseconds(300); }
  /// For the message of a timeout in operation `number`: the ranks that are known not to have begun it, and their
  /// progress; empty if none is known.
  [[nodiscard]] virtual std::string laggards(std::uint64_t number) const = 0;
};

}  // namespace syncopate::transport::membership
