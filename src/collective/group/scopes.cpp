// Scopes of a group: finds the part that this rank belongs to.
#include "collective/group/scopes.hpp"

#include <algorithm>

#include "collective/select/scope.hpp"

namespace syncopate::collective::group {

namespace {

constexpr const char* kMixed = "shm+tcp";

bool share_memory(const transport::Endpoint& endpoint, const std::vector<int>& ranks) {
  if (endpoint.kind == "shm") return true;
  return endpoint.kind == kMixed && std::ranges::all_of(ranks, [&](int rank) {
           return endpoint.hosts[static_cast<std::size_t>(rank)] ==
                  endpoint.hosts[static_cast<std::size_t>(endpoint.rank)];
         });
}

Members members_of(const transport::Endpoint& endpoint, PlanRequest place, Scope scope) {
  place.scope = scope;
  Members members;
  for (const select::PartRanks& part : select::parts_of(place)) {
    const auto own = std::ranges::find(part, static_cast<std::uint32_t>(endpoint.rank));
    if (own == part.end()) continue;
    members.ranks.assign(part.begin(), part.end());
    members.rank = static_cast<int>(own - part.begin());
    members.request = select::request_of_part(place, part);
    members.shares_memory = share_memory(endpoint, members.ranks);
  }
  return members;
}

}  // namespace

std::string kind_in_memory(const transport::Endpoint& endpoint) {
  return endpoint.kind == kMixed ? "shm" : endpoint.kind;
}

Scopes::Scopes(const transport::Endpoint& endpoint, const PlanRequest& place) {
  for (const Scope scope : {Scope::group, Scope::host, Scope::across})
    members_[static_cast<std::size_t>(scope)] = members_of(endpoint, place, scope);
}

}  // namespace syncopate::collective::group
