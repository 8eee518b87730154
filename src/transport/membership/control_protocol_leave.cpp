// ControlProtocol, when ranks leave: farewells, the edges that replace those of departed ranks, and its own end.
#include <algorithm>
#include <utility>

#include "transport/membership/control_protocol.hpp"

namespace syncopate::transport::membership {

namespace {
constexpr auto kLastWords = std::chrono::milliseconds(200);  // time for new edges to carry a failure
constexpr auto kFarewell = std::chrono::seconds(1);          // limit of waiting until live neighbours have regrouped
}  // namespace

void ControlProtocol::take(int from, const Goodbye& goodbye) {
  if (goodbye.rank < 0 || goodbye.rank >= size() || goodbye.rank == options_.rank || state_.has_left(goodbye.rank))
    return;
  tree_.flood(encode(goodbye), from);
  for (const Silence& silence : goodbye.silences)
    if (silence.rank >= 0 && silence.rank < size() && silence.rank != options_.rank)
      tree_.note_silence(silence.rank, std::chrono::milliseconds(silence.milliseconds));
  if (const auto broken = state_.left(goodbye.rank, goodbye.number)) learn(*broken, options_.rank);
  regroup();
  close_listeners();
  mailbox_->ring();
}

/// Makes the edges that are missing since a rank has left, and then closes the edge to that rank: until then it relays,
/// so that the tree is never cut.
void ControlProtocol::regroup() {
  std::set<int> departed;
  for (const auto& [rank, number] : state_.departed()) departed.insert(rank);
  for (const int rank : departed) tree_.expect_no_more(rank);
  if (leaves()) return withdraw(departed);
  departed_before_ = departed;
  const std::set<int> first = neighbours_of(options_.rank, size());  // joining waits for these
  for (const int rank : neighbours_of(options_.rank, size(), departed)) {
    if (tree_.has(rank) || tree_.expected().contains(rank) || first.contains(rank)) continue;
    tree_.expect(rank, options_.silence * 3 / 4);  // the rest is for connecting
    if (rank < options_.rank) call(rank);
  }
  if (tree_.expected().empty()) part_from(departed);
}

/// A leaving rank opens no new edges and relays until its neighbours have closed their edges to it. It closes edges to
/// ranks that left before it, as others do. If two ranks leave, the one without another edge closes first, because it
/// has nothing left to relay; a rank that may still connect counts as an edge. When all ranks leave, no relay is
/// needed.
void ControlProtocol::withdraw(const std::set<int>& departed) {
  const std::set<int> edges = tree_.ranks();
  const bool is_relay = edges.size() + tree_.expected().size() > 1 && std::cmp_less(departed.size() + 1, size());
  if (!is_relay)
    part_from(departed);
  else if (std::ranges::includes(edges, neighbours_of(options_.rank, size(), departed_before_)))
    part_from(departed_before_);
}

void ControlProtocol::part_from(const std::set<int>& departed) {
  spread_failure(-1);  // a parted edge carries no further message
  for (const int rank : tree_.ranks())
    if (departed.contains(rank)) tree_.part(rank, encode(Regrouped{}));
}

void ControlProtocol::take(int from, const Regrouped& /*regrouped*/) {
  if (leaves()) tree_.detach(from);
}

/// A failure must be passed on soon; a slow neighbour gets as much time as a rank that waits for the cause of a lost
/// link. A silent neighbour may be gone without any other rank knowing it: the leaving rank stays until the neighbour
/// sends again, or is lost.
void ControlProtocol::decide_end() {
  if (state_.failed())
    go_at_ = std::min(go_at_, now() + (tree_.idle() ? base::Duration(kLastWords) : grace()));
  else if (now() >= go_at_ && tree_.longest_silence() > 2 * beat_.interval())
    go_at_ = now() + beat_.interval();
}

void ControlProtocol::leave() {
  spread_failure(-1);
  go_at_ = now() + kFarewell;
  if (!state_.failed()) {
    // The last operation is compared too: the others may have called another one.
    for (const int rank : tree_.ranks()) tree_.send(rank, encode(state_.heartbeat_for(rank)));
    tree_.flood(encode(own_goodbye()));
    tree_.be_patient();  // no rank has to connect to one that leaves
  }
  regroup();
  tree_.flush();
  decide_end();
}

Goodbye ControlProtocol::own_goodbye() const {
  Goodbye goodbye{.rank = options_.rank, .number = state_.progress().number};
  // the tree's times are from that run
  const base::Duration since = beat_.since_run(now());
  for (const auto& [rank, silent] : tree_.silences()) {
    if (state_.has_left(rank) || goodbye.silences.size() == kMostSilences) continue;
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(silent + since);
    goodbye.silences.push_back({rank, static_cast<std::uint32_t>(milliseconds.count())});
  }
  return goodbye;
}

bool ControlProtocol::is_gone() const { return leaves() && (may_go() || now() >= go_at_); }

/// The kernel drops unsent output when a socket with unread input is closed, so the input is read first. No new
/// connection is accepted: a rank with this rank's proof would take its end for a loss.
void ControlProtocol::drain(std::span<const socket::Ready> ready) {
  for (const socket::Ready& one : ready)
    if (one.key < connect::Acceptor::kFirstKey) tree_.on_ready(one);
}

/// A rank that has just connected would take a silent end for a loss.
bool ControlProtocol::may_go() const {
  if (acceptor_.busy()) return false;
  if (!state_.failed()) return tree_.ranks().empty();
  // A failure must also reach neighbours whose connections are still being made, while ranks join or regroup.
  if (!tree_.expected().empty()) return false;
  const std::size_t joined = joined_.with([](const std::set<int>& ranks) { return ranks.size(); });
  return tree_.idle() && joined >= neighbours_of(options_.rank, size()).size();
}

}  // namespace syncopate::transport::membership
