// GroupAccess: what the library needs of a group and its users do not.
#pragma once

#include "base/clock.hpp"
#include "collective/group/request.hpp"
#include "syncopate/group.hpp"
#include "transport/endpoint.hpp"

namespace syncopate {

class GroupAccess final {
 public:
  /// For the files of collective/group, which include its definition, and for tests.
  [[nodiscard]] static Group::Impl& impl(Group& group) noexcept { return *group.impl_; }

  /// A group on an endpoint that is already joined.
  [[nodiscard]] static std::unique_ptr<Group> group_on(transport::Endpoint endpoint, const GroupOptions& options);

  /// Runs a request on this thread, after the group's earlier ones.
  static void run(Group& group, const collective::group::Request& request);
  /// Ranks and hosts of the group; the other fields are unset.
  [[nodiscard]] static const PlanRequest& place(Group& group);
  /// The end of a wait until `deadline`, or the time before it at which to call `poll_callback`.
  [[nodiscard]] static base::Time next_look(Group& group, base::Time deadline);
  /// Calls GroupOptions::while_waiting; throws what it throws.
  static void poll_callback(Group& group);
};

}  // namespace syncopate
