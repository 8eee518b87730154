// Replay: a discrete-event run of all ranks' plans with one send and one receive port per rank.
#include "collective/plan/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "collective/plan/program.hpp"

namespace syncopate::collective::plan {

namespace {

constexpr double kLater = std::numeric_limits<double>::infinity();

/// One rank while the plans run.
struct Player {
  Program program;
  std::vector<double> finished;       ///< by step: when, or kLater
  std::vector<std::size_t> sent;      ///< by outgoing route: steps begun
  std::vector<std::size_t> received;  ///< by incoming route: steps begun
  double send_port = 0, receive_port = 0;
};

struct Candidate {
  std::size_t route_out = 0, route_in = 0;
  std::uint32_t send_step = std::numeric_limits<std::uint32_t>::max(), receive_step = 0;
  std::uint32_t to = 0;
};

class Stage final {
 public:
  Stage(const std::vector<Plan>& plans, const Duration& duration) : duration_(duration) {
    for (const Plan& plan : plans) {
      Player player;
      player.program = compile(plan);
      player.finished.assign(plan.steps.size(), kLater);
      player.sent.assign(player.program.outgoing.size(), 0);
      player.received.assign(player.program.incoming.size(), 0);
      unfinished_ += plan.steps.size();
      players_.push_back(std::move(player));
    }
  }

  Replay run() {
    while (unfinished_ > 0) {
      if (begin_all()) continue;
      if (arrivals_.empty()) break;
      now_ = arrivals_.top().first;
      while (!arrivals_.empty() && arrivals_.top().first <= now_) {
        arrive(arrivals_.top().second);
        arrivals_.pop();
      }
      while (land_any()) {
      }
    }
    replay_.makespan = latest_;
    if (unfinished_ > 0) replay_.stuck = describe();
    return std::move(replay_);
  }

 private:
  bool ready(const Player& player, std::uint32_t step) const {
    return std::ranges::all_of(player.program.waits[step],
                               [&](std::uint32_t earlier) { return player.finished[earlier] <= now_; });
  }

  /// The earliest step of `from` that can begin now; its send_step stays at the maximum when there is none.
  Candidate choose(std::uint32_t from) const {
    Candidate best;
    const Player& sender = players_[from];
    for (std::size_t out = 0; out < sender.program.outgoing.size(); ++out) {
      const Route& route = sender.program.outgoing[out];
      if (sender.sent[out] == route.steps.size() || route.peer >= players_.size()) continue;
      const std::uint32_t step = route.steps[sender.sent[out]];
      const Player& receiver = players_[route.peer];
      const auto& incoming = receiver.program.incoming;
      const auto found = std::ranges::find(incoming, from, &Route::peer);
      if (step >= best.send_step || found == incoming.end() || receiver.receive_port > now_) continue;
      const auto in = static_cast<std::size_t>(found - incoming.begin());
      if (receiver.received[in] == found->steps.size()) continue;
      const std::uint32_t receive_step = found->steps[receiver.received[in]];
      const bool may_travel = receiver.program.plan.steps[receive_step].act == Act::receive_reduce;
      if (ready(sender, step) && (may_travel || ready(receiver, receive_step)))
        best = {out, in, step, receive_step, route.peer};
    }
    return best;
  }

  /// Every idle sender offers its earliest step; a receiver takes the offer for its own earliest one, so that nobody
  /// jumps ahead of what is awaited first. The others offer again, to ports that are still idle.
  bool begin_all() {
    std::map<std::uint32_t, std::pair<std::uint32_t, Candidate>> taken;  // by receiver: from whom, what
    for (std::uint32_t from = 0; from < players_.size(); ++from) {
      if (players_[from].send_port > now_) continue;
      const Candidate offer = choose(from);
      if (offer.send_step == std::numeric_limits<std::uint32_t>::max()) continue;
      const auto [held, is_first] = taken.try_emplace(offer.to, from, offer);
      if (!is_first && offer.receive_step < held->second.second.receive_step) held->second = {from, offer};
    }
    for (const auto& [to, offer] : taken) begin(offer.first, offer.second);
    return !taken.empty();
  }

  void begin(std::uint32_t from, const Candidate& found) {
    Player& sender = players_[from];
    Player& receiver = players_[found.to];
    const double end = now_ + duration_(from, found.to, receiver.program.plan.steps[found.receive_step]);
    ++sender.sent[found.route_out];
    ++receiver.received[found.route_in];
    sender.send_port = receiver.receive_port = end;
    arrivals_.emplace(end, replay_.transfers.size());
    replay_.moments.push_back({replay_.transfers.size(), false});
    replay_.transfers.push_back({from, found.to, found.send_step, found.receive_step, now_, end});
  }

  void arrive(std::size_t transfer) {
    const Transfer& arrived = replay_.transfers[transfer];
    players_[arrived.from].finished[arrived.send_step] = now_;
    --unfinished_;
    landing_.push_back(transfer);
  }

  bool land_any() {
    const auto lands = std::ranges::find_if(landing_, [&](std::size_t transfer) {
      const Transfer& arrived = replay_.transfers[transfer];
      return ready(players_[arrived.to], arrived.receive_step);
    });
    if (lands == landing_.end()) return false;
    const Transfer& arrived = replay_.transfers[*lands];
    players_[arrived.to].finished[arrived.receive_step] = now_;
    --unfinished_;
    latest_ = now_;
    replay_.moments.push_back({*lands, true});
    landing_.erase(lands);
    return true;
  }

  std::string describe() const {
    for (std::size_t rank = 0; rank < players_.size(); ++rank) {
      const Player& player = players_[rank];
      const auto step = std::ranges::find(player.finished, kLater);
      if (step == player.finished.end()) continue;
      const auto index = static_cast<std::size_t>(step - player.finished.begin());
      const PlanStep& planned = player.program.plan.steps[index];
      return fmt::format("rank {} never finishes step {} ({} rank {}, chunk {})", rank, index,
                         planned.act == Act::send ? "send to" : "receive from", planned.peer, planned.first_chunk);
    }
    return {};
  }

  const Duration& duration_;
  std::vector<Player> players_;
  std::size_t unfinished_ = 0;
  double now_ = 0, latest_ = 0;
  using Arrival = std::pair<double, std::size_t>;  // when, which transfer
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::vector<std::size_t> landing_;  ///< transfers that have arrived and not landed
  Replay replay_;
};

}  // namespace

Replay replay(const std::vector<Plan>& plans, const Duration& duration) { return Stage(plans, duration).run(); }

}  // namespace syncopate::collective::plan
