// Endpoints of ranks that are threads of one process.
#include <algorithm>

#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/delay.hpp"
#include "transport/endpoint.hpp"
#include "transport/inproc/control.hpp"
#include "transport/inproc/transport.hpp"

namespace syncopate::transport {

namespace {

/// Rank 0 of the sub-group makes the hub and sends its number; the hub is kept until every member has fetched it.
std::shared_ptr<inproc::Hub> branch_of(inproc::Hub& parent, const connect::rendezvous::Member& me,
                                       base::Duration patience, connect::rendezvous::Rendezvous& meeting) {
  std::string text;
  if (me.rank == 0) {
    std::lock_guard lock(parent.mutex);
    text = std::to_string(parent.next_branch);
    parent.branches[parent.next_branch++] = {std::make_shared<inproc::Hub>(me.size), me.size};
  }
  const auto texts = meeting.exchange(me, text, std::chrono::steady_clock::now() + patience);
  std::lock_guard lock(parent.mutex);
  const auto found = parent.branches.find(std::stoull(texts.at(0)));
  std::shared_ptr<inproc::Hub> hub = found->second.first;
  if (--found->second.second == 0) parent.branches.erase(found);
  return hub;
}

struct ThreadOptions {
  base::Duration patience, delay;
};

Endpoint endpoint_of(const std::shared_ptr<inproc::Hub>& hub, const connect::rendezvous::Member& me,
                     const ThreadOptions& options) {
  auto control = std::make_shared<inproc::InprocControl>(hub, me.rank);
  return {.rank = me.rank,
          .size = me.size,
          .kind = "inproc",
          .hosts = std::vector<std::string>(static_cast<std::size_t>(me.size), "this process"),
          .control = control,
          .links = delayed(std::make_unique<inproc::InprocTransport>(hub, control, me.rank), options.delay),
          .branch = [hub, options](int rank, int size, connect::rendezvous::Rendezvous& meeting) {
            const connect::rendezvous::Member member{rank, size};
            return endpoint_of(branch_of(*hub, member, options.patience, meeting), member, options);
          }};
}

}  // namespace

std::vector<Endpoint> join_threads(int size, const GroupOptions& options) {
  auto hub = std::make_shared<inproc::Hub>(size);
  const ThreadOptions own{std::min(options.join_timeout.value_or(connect::kJoinTimeout), connect::kLongestBound),
                          options.delay.value_or(std::chrono::microseconds{0})};
  std::vector<Endpoint> endpoints;
  for (int rank = 0; rank < size; ++rank) endpoints.push_back(endpoint_of(hub, {rank, size}, own));
  return endpoints;
}

}  // namespace syncopate::transport
