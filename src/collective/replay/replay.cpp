// Replay: a discrete-event run of all ranks' programs with one send and one receive port per rank.
#include "collective/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace syncopate::collective::replay {

namespace {

using plan::Program;
using plan::Route;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// The receiver's incoming route for an outgoing route; kNone: the receiver has no such route.
struct Facing {
  std::uint32_t to = 0, route = kNone;
};

/// The state of one program during the replay.
struct Player {
  const Program* program = nullptr;
  std::vector<Facing> facing;          ///< receiving ends, by outgoing route
  std::vector<std::size_t> begun;      ///< messages begun, by outgoing route; equals the index on the receiver's route
  std::vector<std::uint32_t> senders;  ///< players that send to this one
  std::vector<bool> finished;          ///< by step
  std::vector<std::size_t> held;       ///< transfers that have arrived but wait for earlier steps
  std::size_t unfinished = 0;
  bool called = false, sends = false, receives = false;  ///< now
  bool is_stirred = false;                               ///< something has changed since it last made an offer
};

struct Offer {
  std::uint32_t to = 0, receive_step = 0, from = 0, send_step = kNone;
  std::size_t route = 0;  ///< of the sender
};

/// An entry of the event queue: a transfer arrives; from index `kCall` on, a player calls.
constexpr std::size_t kCall = std::numeric_limits<std::size_t>::max() / 2;
using Ending = std::pair<double, std::size_t>;
// Times that differ only by rounding count as equal; otherwise rounding would decide which message gets a port.
constexpr double kSameTime = 1 + 1e-12;

class Stage final {
 public:
  Stage(const Ensemble& ensemble, const Conditions& conditions)
      : ensemble_(ensemble), conditions_(conditions), players_(ensemble.programs.size()) {
    for (std::uint32_t index = 0; index < players_.size(); ++index) {
      set_up(index);
      const double called = conditions.called.empty() ? 0 : conditions.called[index];
      replay_.ended.push_back(called);
      events_.emplace(called, kCall + index);
    }
  }

  Replay run() {
    while (!events_.empty()) {
      now_ = events_.top().first;
      while (!events_.empty() && events_.top().first <= now_ * kSameTime) {
        const std::size_t event = events_.top().second;
        events_.pop();
        event < kCall ? arrive(event) : call(static_cast<std::uint32_t>(event - kCall));
      }
      while (begin_offers()) {
      }
    }
    if (!replay_.ended.empty()) replay_.makespan = *std::ranges::max_element(replay_.ended);
    replay_.stuck = describe();
    return std::move(replay_);
  }

 private:
  void set_up(std::uint32_t index) {
    Player& player = players_[index];
    player.program = &ensemble_.programs[index];
    player.unfinished = player.program->plan.steps.size();
    player.finished.assign(player.unfinished, false);
    player.begun.assign(player.program->outgoing.size(), 0);
    for (const Route& route : player.program->outgoing) player.facing.push_back(facing_of(index, route.peer));
    for (const Route& route : player.program->incoming)
      if (ensemble_.rotates() || route.peer < players_.size())
        player.senders.push_back(ensemble_.rotates() ? 0 : route.peer);
  }

  [[nodiscard]] Facing facing_of(std::uint32_t from, std::uint32_t peer) const {
    const bool rotates = ensemble_.rotates();
    const Facing facing{rotates ? 0 : peer, kNone};
    if (facing.to >= players_.size()) return facing;
    const auto& incoming = ensemble_.programs[facing.to].incoming;
    const auto route = std::ranges::find(incoming, rotates ? ensemble_.ranks - peer : from, &Route::peer);
    if (route == incoming.end()) return facing;
    return {facing.to, static_cast<std::uint32_t>(route - incoming.begin())};
  }

  [[nodiscard]] static bool is_ready(const Player& player, std::uint32_t step) {
    return std::ranges::all_of(player.program->waits[step],
                               [&](std::uint32_t earlier) { return player.finished[earlier]; });
  }

  /// Marks a player, and those that send to it, for new offers after a change.
  void stir(std::uint32_t index) {
    list(index);
    for (const std::uint32_t sender : players_[index].senders) list(sender);
  }
  void list(std::uint32_t sender) {
    if (!std::exchange(players_[sender].is_stirred, true)) stirred_.push_back(sender);
  }

  void call(std::uint32_t index) {
    players_[index].called = true;
    stir(index);
  }

  /// The earliest step of `from` that can begin now; send_step is kNone if there is none.
  [[nodiscard]] Offer choose(std::uint32_t from) const {
    Offer best;
    const Player& sender = players_[from];
    for (std::size_t out = 0; out < sender.facing.size(); ++out) {
      const Route& route = sender.program->outgoing[out];
      const std::size_t next = sender.begun[out];
      if (next == route.steps.size() || sender.facing[out].route == kNone) continue;
      const Player& receiver = players_[sender.facing[out].to];
      const Route& incoming = receiver.program->incoming[sender.facing[out].route];
      if (route.steps[next] >= best.send_step || receiver.receives || !receiver.called) continue;
      if (next >= incoming.steps.size() || !is_ready(sender, route.steps[next])) continue;
      const std::uint32_t receive_step = incoming.steps[next];
      const bool may_travel = receiver.program->plan.steps[receive_step].act == Act::receive_reduce;
      if (may_travel || is_ready(receiver, receive_step))
        best = {sender.facing[out].to, receive_step, from, route.steps[next], out};
    }
    return best;
  }

  /// Every idle sender offers its earliest step. A receiver accepts the offer for its own earliest step, so that steps
  /// that are awaited first come first. Senders that were not accepted offer again to ports that are still idle.
  bool begin_offers() {
    std::vector<Offer> offers;
    for (const std::uint32_t from : std::exchange(stirred_, {})) {
      players_[from].is_stirred = false;
      if (players_[from].sends || !players_[from].called) continue;
      const Offer offer = choose(from);
      if (offer.send_step != kNone) offers.push_back(offer);
    }
    std::ranges::sort(offers, {}, [](const Offer& offer) { return std::tuple(offer.to, offer.receive_step); });
    for (const Offer& offer : offers) players_[offer.to].receives ? list(offer.from) : begin(offer);
    return !offers.empty();
  }

  void begin(const Offer& offer) {
    Player &sender = players_[offer.from], &receiver = players_[offer.to];
    const double end = conditions_.end_of({receiver.program->plan.steps[offer.receive_step], offer.to, now_});
    ++sender.begun[offer.route];
    sender.sends = receiver.receives = true;
    events_.emplace(end, replay_.transfers.size());
    replay_.events.push_back({replay_.transfers.size(), false});
    replay_.transfers.push_back({offer.from, offer.to, offer.send_step, offer.receive_step, now_, end});
  }

  void arrive(std::size_t transfer) {
    const Transfer& arrived = replay_.transfers[transfer];
    players_[arrived.from].sends = players_[arrived.to].receives = false;
    players_[arrived.to].held.push_back(transfer);
    finish(arrived.from, arrived.send_step);
    land(arrived.from);
    land(arrived.to);
  }

  void finish(std::uint32_t index, std::uint32_t step) {
    players_[index].finished[step] = true;
    --players_[index].unfinished;
    replay_.ended[index] = now_;
  }

  /// Transfers that have arrived land as soon as the receiver's earlier steps have finished.
  void land(std::uint32_t index) {
    auto& held = players_[index].held;
    for (std::size_t i = 0; i < held.size();) {
      const std::uint32_t step = replay_.transfers[held[i]].receive_step;
      if (!is_ready(players_[index], step)) {
        ++i;
        continue;
      }
      replay_.events.push_back({held[i], true});
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      finish(index, step);
      i = 0;
    }
    stir(index);
  }

  [[nodiscard]] std::string describe() const {
    for (std::size_t rank = 0; rank < players_.size(); ++rank) {
      const Player& player = players_[rank];
      if (player.unfinished == 0) continue;
      const auto index = static_cast<std::size_t>(std::ranges::find(player.finished, false) - player.finished.begin());
      const PlanStep& planned = player.program->plan.steps[index];
      return fmt::format("rank {} never finishes step {} ({} rank {}, chunk {})", rank, index,
                         planned.act == Act::send ? "send to" : "receive from", planned.peer, planned.first_chunk);
    }
    return {};
  }

  const Ensemble& ensemble_;
  const Conditions& conditions_;
  std::vector<Player> players_;
  std::vector<std::uint32_t> stirred_;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> events_;
  double now_ = 0;
  Replay replay_;
};

}  // namespace

Replay run(const Ensemble& ensemble, const Conditions& conditions) { return Stage(ensemble, conditions).run(); }

}  // namespace syncopate::collective::replay
