// Scopes and sub-groups: the part that this rank belongs to, and the rendezvous of a split over the group.
#include "collective/group/scopes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collective/group/impl.hpp"
#include "collective/select/scope.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"

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

namespace syncopate {

namespace {

/// All-gathers one text per rank; lengths are sent first.
std::vector<std::string> share(Group& group, const std::string& mine) {
  const auto size = static_cast<std::size_t>(group.size()), rank = static_cast<std::size_t>(group.rank());
  std::vector<std::int64_t> lengths(size);
  lengths[rank] = static_cast<std::int64_t>(mine.size());
  allgather(group, std::span(lengths), {.name = "split: lengths"});
  const std::vector<std::size_t> parts(lengths.begin(), lengths.end());
  const auto begin_of = [&](std::size_t part) {
    return std::accumulate(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(part), std::size_t{0});
  };
  std::string all(begin_of(size), '\0');
  all.replace(begin_of(rank), mine.size(), mine);
  allgather_v(group, Buffer(all.data(), all.size(), DType::u8), parts, {.name = "split: addresses"});
  std::vector<std::string> texts;
  for (std::size_t other = 0, begin = 0; other < size; begin += parts[other++])
    texts.push_back(all.substr(begin, parts[other]));
  return texts;
}

/// A rendezvous of a sub-group's members by collectives of the whole group, in which every rank takes part once.
class OverGroup final : public transport::connect::rendezvous::Rendezvous {
 public:
  OverGroup(Group& group, std::vector<int> members) : group_(group), members_(std::move(members)) {}

  std::vector<std::string> exchange(const transport::connect::rendezvous::Member& /*me*/, std::string mine,
                                    base::Time /*deadline*/) override {
    const std::vector<std::string> texts = share(group_, mine);
    std::vector<std::string> chosen;
    for (const int member : members_) chosen.push_back(texts[static_cast<std::size_t>(member)]);
    return chosen;
  }

 private:
  Group& group_;
  std::vector<int> members_;
};

/// The ranks with this rank's colour, in the order of (key, rank).
std::vector<int> members_of(Group& group, int color, int key) {
  const auto size = static_cast<std::size_t>(group.size()), rank = static_cast<std::size_t>(group.rank());
  std::vector<std::int32_t> wishes(2 * size);
  wishes[2 * rank] = color;
  wishes[2 * rank + 1] = key;
  allgather(group, std::span(wishes), {.name = "split: colours and keys"});
  std::vector<int> members;
  for (std::size_t other = 0; other < size; ++other)
    if (wishes[2 * other] == color) members.push_back(static_cast<int>(other));
  std::ranges::stable_sort(members, {}, [&](int member) { return wishes[2 * static_cast<std::size_t>(member) + 1]; });
  return members;
}

}  // namespace

std::unique_ptr<Group> Group::split(int color, int key) {
  const std::vector<int> members = members_of(*this, color, key);
  OverGroup meeting(*this, members);
  if (color < 0) {
    static_cast<void>(meeting.exchange({}, {}, {}));
    return nullptr;
  }
  try {
    return std::unique_ptr<Group>(new Group(impl_->branch(members, meeting)));
  } catch (const std::exception& error) {
    abort(fmt::format("it could not split the group: {}", error.what()));
    throw;
  }
}

std::unique_ptr<Group::Impl> Group::Impl::branch(const std::vector<int>& members,
                                                 transport::connect::rendezvous::Rendezvous& meeting) {
  const auto own = std::ranges::find(members, endpoint_.rank);
  const auto place = static_cast<int>(own - members.begin());
  GroupOptions options = options_;
  options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout());
  options.ranks_per_host = 0;  // neighbours have changed: the group's hosts are used
  auto branch = std::make_unique<Impl>(endpoint_.branch(place, static_cast<int>(members.size()), meeting), options);
  const std::vector<std::uint32_t> hosts = collective::select::hosts_of(place_);
  branch->place_.hosts.clear();
  for (const int member : members)
    if (!hosts.empty()) branch->place_.hosts.push_back(hosts[static_cast<std::size_t>(member)]);
  branch->scopes_ = collective::group::Scopes(branch->endpoint_, branch->place_);
  branch->cost_ = cost_;
  if (branch->endpoint_.kind == endpoint_.kind) branch->cost_in_group_memory_ = cost_in_group_memory_;
  return branch;
}

}  // namespace syncopate
