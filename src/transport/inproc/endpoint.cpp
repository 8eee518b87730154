// Endpoints of ranks that are threads of one process.
#include "transport/endpoint.hpp"

#include "transport/delay.hpp"
#include "transport/inproc/control.hpp"
#include "transport/inproc/transport.hpp"
#include "transport/rendezvous/rendezvous.hpp"

namespace syncopate::transport {

namespace {

/// Rank 0 of the sub-group makes the hub and says its number; it is kept until every member has come for it.
std::shared_ptr<Hub> branch_of(Hub& parent, const rendezvous::Member& me, base::Duration patience,
                               rendezvous::Rendezvous& meeting) {
  std::string text;
  if (me.rank == 0) {
    std::lock_guard lock(parent.mutex);
    text = std::to_string(parent.next_branch);
    parent.branches[parent.next_branch++] = {std::make_shared<Hub>(me.size), me.size};
  }
  const auto texts = meeting.exchange(me, text, std::chrono::steady_clock::now() + patience);
  std::lock_guard lock(parent.mutex);
  const auto found = parent.branches.find(std::stoull(texts.at(0)));
  std::shared_ptr<Hub> hub = found->second.first;
  if (--found->second.second == 0) parent.branches.erase(found);
  return hub;
}

struct Habits {
  base::Duration patience, delay;
};

Endpoint endpoint_of(const std::shared_ptr<Hub>& hub, const rendezvous::Member& me, const Habits& habits) {
  auto control = std::make_shared<InprocControl>(hub, me.rank);
  return {.rank = me.rank,
          .size = me.size,
          .kind = "inproc",
          .hosts = std::vector<std::string>(static_cast<std::size_t>(me.size), "this process"),
          .control = control,
          .links = delayed(std::make_unique<InprocTransport>(hub, control, me.rank), habits.delay),
          .branch = [hub, habits](int rank, int size, rendezvous::Rendezvous& meeting) {
            const rendezvous::Member member{rank, size};
            return endpoint_of(branch_of(*hub, member, habits.patience, meeting), member, habits);
          }};
}

}  // namespace

std::vector<Endpoint> inproc_endpoints(int size, const GroupOptions& options) {
  auto hub = std::make_shared<Hub>(size);
  const Habits habits{options.join_timeout.value_or(kJoinTimeout),
                      options.delay.value_or(std::chrono::microseconds{0})};
  std::vector<Endpoint> endpoints;
  for (int rank = 0; rank < size; ++rank) endpoints.push_back(endpoint_of(hub, {rank, size}, habits));
  return endpoints;
}

}  // namespace syncopate::transport
