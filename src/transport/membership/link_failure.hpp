// LinkFailures: why a link failed, and how the polling thread reports it to the group.
#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "transport/membership/control.hpp"

namespace syncopate::transport::membership {

/// Why a link to a peer failed. No byte moves on it afterwards.
struct LinkFailure {
  enum class Kind : std::uint8_t {
    lost,
    corrupt,
    refused,  ///< by this rank's system
    other_operation,
    other_length
  };
  Kind kind = Kind::lost;
  std::string reason;
  std::uint64_t operation = 0;  ///< of other_operation and other_length: the one in which the ranks differ
};

/// Reports failed links to control. Used by the polling thread.
class LinkFailures final {
 public:
  LinkFailures(int rank, std::shared_ptr<Control> control) : rank_(rank), control_(std::move(control)) {}

  /// Reports, or returns when to call again (kNever: control wakes the poll). A lost link is reported late by
  /// `Control::grace`: a peer closes its links when the group fails elsewhere, and control then brings the first cause.
  [[nodiscard]] base::Time report(int peer, const LinkFailure& link_failure, base::Time at);
  /// Call it when no link has failed: the next lost link then gets its full time.
  void clear() noexcept { since_ = base::kNever; }

 private:
  void report_lost(int peer, const std::string& reason);

  const int rank_;
  std::shared_ptr<Control> control_;
  struct Lost {
    int peer = -1;
    std::string reason;
  };
  base::Time since_ = base::kNever;  ///< when a link was first found lost
  Lost first_;                       ///< of that link
  bool asked_ = false;               ///< control was asked about a mismatch
};

}  // namespace syncopate::transport::membership
