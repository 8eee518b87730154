// Complaint: what keeps posts to a peer from finishing, and when and how the group is told.
#pragma once

#include <memory>
#include <string>

#include "transport/membership/tree_control.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport::membership {

/// Why a link to a peer can go no further. Nothing moves on it afterwards.
struct LinkFailure {
  enum class Kind : std::uint8_t { lost, corrupt, other_operation, other_length };
  Kind kind = Kind::lost;
  std::string reason;
  Label expected;  ///< of the receive that did not fit; of an earlier operation's frame, its own
};

/// Reports troubles to control. A link that ended may be the echo of a failure elsewhere: its origin, which control
/// brings, is the better name, so such a trouble waits a moment. Used by the polling thread.
class LinkFailures final {
 public:
  LinkFailures(int rank, std::shared_ptr<TreeControl> control) : rank_(rank), control_(std::move(control)) {}

  /// Reports, or returns when to look again (kNever: control will ring).
  [[nodiscard]] base::Time face(int peer, const LinkFailure& link_failure, base::Time at);
  /// No link is in trouble (any more).
  void calm() noexcept { since_ = base::kNever; }

 private:
  void lose(int peer, const std::string& reason);

  const int rank_;
  std::shared_ptr<TreeControl> control_;
  base::Time since_ = base::kNever;
  bool asked_ = false;  ///< control has been asked about a mismatch
};

}  // namespace syncopate::transport::membership
