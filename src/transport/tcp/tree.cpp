// Tree: this rank's edges of the control tree: parent (r-1)/2 and children 2r+1, 2r+2.
#include "transport/tcp/tree.hpp"

#include <fmt/format.h>

#include "syncopate/error.hpp"
#include "transport/tcp/message.hpp"

namespace syncopate::transport::tcp {

std::vector<int> neighbours_of(int rank, int size) {
  std::vector<int> ranks;
  if (rank > 0) ranks.push_back(parent_of(rank));
  for (const int child : {2 * rank + 1, 2 * rank + 2})
    if (child < size) ranks.push_back(child);
  return ranks;
}

bool Tree::attach(int rank, Channel channel) {
  const auto [edge, fresh] = edges_.try_emplace(rank, Edge{Messenger(std::move(channel), kMaxMessage)});
  if (fresh) poller_.add(edge->second.messenger.socket(), static_cast<std::uint64_t>(rank), EPOLLIN);
  return fresh;
}

void Tree::detach(int rank) {
  const auto edge = edges_.find(rank);
  if (edge == edges_.end()) return;
  poller_.remove(edge->second.messenger.socket());
  edges_.erase(edge);
}

Tree::Edges::iterator Tree::drop(Edges::iterator edge, std::string reason) {
  lost_.push_back({edge->first, std::move(reason)});
  poller_.remove(edge->second.messenger.socket());
  return edges_.erase(edge);
}

void Tree::send(int rank, const std::string& message) {
  if (const auto edge = edges_.find(rank); edge != edges_.end()) edge->second.messenger.queue(message);
}

void Tree::flood(const std::string& message, int except) {
  for (auto& [rank, edge] : edges_)
    if (rank != except) edge.messenger.queue(message);
}

void Tree::send_if_idle(int rank, const std::string& message) {
  const auto edge = edges_.find(rank);
  if (edge != edges_.end() && edge->second.messenger.idle()) edge->second.messenger.queue(message);
}

void Tree::on_ready(const Ready& ready) {
  const auto edge = edges_.find(static_cast<int>(ready.key));
  if (edge == edges_.end() || (ready.events & ~std::uint32_t{EPOLLOUT}) == 0) return;
  std::vector<std::string> messages;
  std::string reason;
  try {
    if (!edge->second.messenger.read(messages))
      reason = fmt::format("ended without a word ({})", edge->second.messenger.reason());
  } catch (const Corrupt& corrupt) {
    reason = fmt::format("sent nonsense ({})", corrupt.what());
  }
  if (!messages.empty()) edge->second.silent = base::Duration(0);
  for (std::string& message : messages) heard_.push_back({edge->first, std::move(message)});
  if (!reason.empty()) drop(edge, std::move(reason));
}

void Tree::flush() {
  for (auto edge = edges_.begin(); edge != edges_.end();) {
    Messenger& messenger = edge->second.messenger;
    // A broken edge is found by reading, which also finds what the neighbour said before it broke.
    const bool waits = messenger.flush() && !messenger.idle();
    if (waits != edge->second.watching_out) {
      edge->second.watching_out = waits;
      poller_.change(messenger.socket(), static_cast<std::uint64_t>(edge->first), waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    ++edge;
  }
}

bool Tree::idle() const noexcept {
  for (const auto& [rank, edge] : edges_)
    if (!edge.messenger.idle()) return false;
  return true;
}

void Tree::age(base::Duration ran, base::Duration limit) {
  for (auto edge = edges_.begin(); edge != edges_.end();) {
    edge->second.silent += ran;
    if (edge->second.silent < limit) {
      ++edge;
      continue;
    }
    edge = drop(edge, fmt::format("sent no heartbeat for {:.1f} s (stopped, or its host is gone)",
                                  base::seconds(edge->second.silent)));
  }
}

std::vector<int> Tree::ranks() const {
  std::vector<int> all;
  for (const auto& [rank, edge] : edges_) all.push_back(rank);
  return all;
}

}  // namespace syncopate::transport::tcp
