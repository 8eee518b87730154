// TreeEdges: this rank's edges of the control tree, existing and expected.
#include "transport/membership/tree_edges.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/error.hpp"
#include "transport/membership/message.hpp"

namespace syncopate::transport::membership {

namespace {

/// The children of a rank; a departed child is replaced by its children.
void add_children(int rank, int size, const std::set<int>& departed, std::set<int>& children) {
  for (const int child : {2 * rank + 1, 2 * rank + 2}) {
    if (child >= size) continue;
    if (departed.contains(child))
      add_children(child, size, departed, children);
    else
      children.insert(child);
  }
}

int root_of(const std::set<int>& departed) {
  int root = 0;
  while (departed.contains(root)) ++root;
  return root;
}

}  // namespace

std::set<int> neighbours_of(int rank, int size, const std::set<int>& departed) {
  std::set<int> neighbours;
  add_children(rank, size, departed, neighbours);
  const int root = root_of(departed);
  if (rank == root) {  // also ranks without a remaining ancestor
    if (root > 0) add_children(0, size, departed, neighbours);
    neighbours.erase(rank);
    return neighbours;
  }
  int parent = rank;
  do {
    parent = parent > 0 ? parent_of(parent) : -1;
  } while (departed.contains(parent));
  neighbours.insert(parent >= 0 ? parent : root);
  return neighbours;
}

namespace {
/// In addition to the kernel's buffers. A failing group of thousands of ranks sends less than this at once.
constexpr std::size_t kMostWaiting = std::size_t{4} << 20;
}  // namespace

bool TreeEdges::attach(int rank, socket::Channel channel) {
  const auto [edge, fresh] = edges_.try_emplace(rank, Edge{socket::FramedChannel(std::move(channel), kMaxMessage)});
  expect_no_more(rank);
  if (fresh) poller_.add(edge->second.channel.socket(), static_cast<std::uint64_t>(rank), EPOLLIN);
  return fresh;
}

void TreeEdges::detach(int rank) {
  const auto edge = edges_.find(rank);
  if (edge == edges_.end()) return;
  poller_.remove(edge->second.channel.socket());
  edges_.erase(edge);
}

void TreeEdges::part(int rank, const std::string& last) {
  const auto edge = edges_.find(rank);
  if (edge == edges_.end() || edge->second.is_parting) return;
  edge->second.channel.queue(last);
  edge->second.is_parting = true;
}

TreeEdges::Edges::iterator TreeEdges::drop(Edges::iterator edge, std::string reason) {
  lost_.push_back({edge->first, std::move(reason)});
  poller_.remove(edge->second.channel.socket());
  return edges_.erase(edge);
}

void TreeEdges::send(int rank, const std::string& message) {
  const auto edge = edges_.find(rank);
  if (edge != edges_.end() && !edge->second.is_parting) edge->second.channel.queue(message);
}

void TreeEdges::flood(const std::string& message, int except) {
  for (auto& [rank, edge] : edges_)
    if (rank != except && !edge.is_parting) edge.channel.queue(message);
}

void TreeEdges::send_if_idle(int rank, const std::string& message) {
  const auto edge = edges_.find(rank);
  if (edge != edges_.end() && edge->second.channel.idle()) send(rank, message);
}

void TreeEdges::on_ready(const socket::Ready& ready) {
  const auto edge = edges_.find(static_cast<int>(ready.key));
  if (edge == edges_.end() || (ready.events & ~std::uint32_t{EPOLLOUT}) == 0) return;
  std::vector<std::string> messages;
  std::string reason;
  try {
    if (!edge->second.channel.read(messages))
      reason = fmt::format("ended without a word ({})", edge->second.channel.reason());
  } catch (const Corrupt& corrupt) {
    reason = fmt::format("sent nonsense ({})", corrupt.what());
  }
  if (!messages.empty()) edge->second.silent = base::Duration(0);
  for (std::string& message : messages) received_.push_back({edge->first, std::move(message)});
  if (!reason.empty()) drop(edge, std::move(reason));
}

void TreeEdges::flush() {
  for (auto edge = edges_.begin(); edge != edges_.end();) {
    socket::FramedChannel& channel = edge->second.channel;
    // Reading detects a broken edge, and also returns the messages that the neighbour sent before.
    const bool waits = channel.flush() && !channel.idle();
    if (channel.waiting_bytes() > kMostWaiting) {
      edge = drop(edge,
                  fmt::format("does not read: more than {} MiB of control messages wait for it", kMostWaiting >> 20));
      continue;
    }
    if (waits != edge->second.watching_out) {
      edge->second.watching_out = waits;
      poller_.change(channel.socket(), static_cast<std::uint64_t>(edge->first), waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    ++edge;
  }
}

bool TreeEdges::idle() const noexcept {
  for (const auto& [rank, edge] : edges_)
    if (!edge.channel.idle()) return false;
  return true;
}

void TreeEdges::age(base::Duration ran, base::Duration limit) {
  for (auto edge = edges_.begin(); edge != edges_.end();) {
    edge->second.silent += ran;
    if (edge->second.silent < limit) {
      ++edge;
      continue;
    }
    edge = drop(edge, fmt::format("sent no heartbeat for {:.1f} s (stopped, or its host is gone)",
                                  base::seconds(edge->second.silent)));
  }
  // A rank that is silent for longer was reported lost by another rank, or has sent something to one.
  for (auto& [rank, silent] : elsewhere_) silent += ran;
  std::erase_if(elsewhere_, [&](const auto& other) { return other.second >= limit; });
  if (is_patient_) return;
  for (auto& [rank, missed] : expected_) missed += ran;
  std::erase_if(expected_, [&](const auto& due) {
    if (due.second < limit) return false;
    lost_.push_back({due.first, fmt::format("sent nothing for {:.1f} s and did not connect after a rank between them "
                                            "had left",
                                            base::seconds(due.second))});
    return true;
  });
}

void TreeEdges::expect(int rank, base::Duration most) {
  const auto known = elsewhere_.extract(rank);
  expected_.try_emplace(rank, known.empty() ? base::Duration(0) : std::min(known.mapped(), most));
}

void TreeEdges::expect_no_more(int rank) {
  expected_.erase(rank);
  elsewhere_.erase(rank);
}

void TreeEdges::note_silence(int rank, base::Duration silent) {
  if (edges_.contains(rank) || expected_.contains(rank)) return;
  const auto [known, fresh] = elsewhere_.try_emplace(rank, silent);
  known->second = std::min(known->second, silent);
}

std::map<int, base::Duration> TreeEdges::silences() const {
  std::map<int, base::Duration> all = expected_;
  for (const auto& [rank, edge] : edges_) all.emplace(rank, edge.silent);
  return all;
}

base::Duration TreeEdges::longest_silence() const noexcept {
  base::Duration longest{0};
  for (const auto& [rank, edge] : edges_) longest = std::max(longest, edge.silent);
  if (is_patient_) return longest;
  for (const auto& [rank, missed] : expected_) longest = std::max(longest, missed);
  return longest;
}

std::set<int> TreeEdges::ranks() const {
  std::set<int> all;
  for (const auto& [rank, edge] : edges_) all.insert(rank);
  return all;
}

std::set<int> TreeEdges::expected() const {
  std::set<int> all;
  for (const auto& [rank, since] : expected_) all.insert(rank);
  return all;
}

}  // namespace syncopate::transport::membership
