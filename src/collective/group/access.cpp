// GroupAccess passes its calls to the implementation.
#include "collective/group/access.hpp"

#include "collective/group/impl.hpp"

namespace syncopate {

std::unique_ptr<Group> GroupAccess::group_on(transport::Endpoint endpoint, const GroupOptions& options) {
  return std::unique_ptr<Group>(new Group(std::make_unique<Group::Impl>(std::move(endpoint), options)));
}
void GroupAccess::run(Group& group, const collective::group::Request& request) { impl(group).run(request); }
const PlanRequest& GroupAccess::place(Group& group) { return impl(group).scopes().of(Scope::group).request; }
base::Time GroupAccess::next_look(Group& group, base::Time deadline) { return impl(group).next_look(deadline); }
void GroupAccess::poll_callback(Group& group) { impl(group).poll_callback(); }

}  // namespace syncopate
