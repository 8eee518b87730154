// Perform: makes the calls of drawn steps on one rank, and checks every result and what lies around it.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "random/oracle.hpp"
#include "syncopate/group.hpp"

namespace syncopate::test {

/// A result is wrong.
class WrongValue final : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A vector of a rank: in its own memory or in the group's, at any place, with marked bytes on both sides.
class Vector final {
 public:
  /// The key decides where.
  Vector(Group& group, DType dtype, std::size_t count, std::uint64_t key);
  [[nodiscard]] const Buffer& buffer() const noexcept { return buffer_; }
  [[nodiscard]] bool is_fenced() const noexcept;

 private:
  std::shared_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
  Buffer buffer_;
};

/// One step of this rank, from its call to the check of its result.
class Performance final {
 public:
  /// Calls; returns at once where the step is a started one.
  Performance(Group& group, const Step& step);
  /// Waits if need be, and checks; throws what the operation threw, or WrongValue.
  void finish();
  /// A hash of the result, where all members of the step's set must have the same.
  [[nodiscard]] std::optional<std::uint64_t> digest() const;
  /// The lowest rank of the set.
  [[nodiscard]] int set() const { return members_.ranks.front(); }

 private:
  void call();
  void call_collective();
  void call_message();

  Group& group_;
  Step step_;
  Members members_;
  bool takes_part_ = true;
  std::optional<Vector> in_, out_;  ///< `out_` where the result lies elsewhere
  std::optional<Work> work_;
};

/// Receives where a result was, and the hash that all ranks must have there.
using Ledger = std::function<void(const std::string& place, std::uint64_t digest)>;

/// A random program: the number of its steps, and the group that runs it.
struct Script {
  std::uint64_t seed = 0;
  int steps = 1;
  World world;
};

/// Performs a script; a started step is waited for at any later time.
void perform(Group& group, const Script& script, const Ledger& ledger);

}  // namespace syncopate::test
