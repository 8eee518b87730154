// Steady: the messages of a route follow each other; each is timed as soon as all its dependencies are timed.
#include "simulate/steady.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/require.hpp"

namespace syncopate::simulate {

namespace {

using collective::plan::Program;

constexpr double kUnknown = -1;  // not timed yet

struct SteadyRank {
  const Program* program = nullptr;
  std::vector<double> finished_s;  ///< by step
  std::size_t sent = 0;            ///< number of messages timed
  double free_s = 0;               ///< time at which its only outgoing link is free at both ends
  double called_s = 0, left_s = 0;
  std::vector<std::pair<std::uint32_t, double>> held;  ///< receives that wait for earlier steps, with their arrival
  bool is_listed = true;                               ///< whether it is on the list of ranks to visit
};

class Recurrence final {
 public:
  Recurrence(const Network& network, const std::vector<Program>& programs, std::uint64_t bytes)
      : network_(network), chunk_bytes_(static_cast<double>(bytes) / programs[0].plan.chunks), ranks_(programs.size()) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      ranks_[i].program = &programs[i];
      ranks_[i].finished_s.assign(programs[i].plan.steps.size(), kUnknown);
      list_.push_back(static_cast<std::uint32_t>(i));
    }
  }

  std::vector<double> run(const std::vector<double>& called_s) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i].called_s = ranks_[i].left_s = called_s[i];
    while (!list_.empty()) {
      const std::uint32_t rank = list_.back();
      list_.pop_back();
      ranks_[rank].is_listed = false;
      while (send_next(rank)) {
      }
    }
    std::vector<double> left_s;
    for (const SteadyRank& rank : ranks_) {
      base::require(std::ranges::find(rank.finished_s, kUnknown) == rank.finished_s.end(),
                    "a plan of {} ranks does not end", ranks_.size());
      left_s.push_back(rank.left_s);
    }
    return left_s;
  }

 private:
  /// The time at which all dependencies of `step` have finished; kUnknown if one is not timed yet.
  [[nodiscard]] static double waited_s(const SteadyRank& rank, std::uint32_t step) {
    double time_s = 0;
    for (const std::uint32_t earlier : rank.program->waits[step]) {
      if (rank.finished_s[earlier] == kUnknown) return kUnknown;
      time_s = std::max(time_s, rank.finished_s[earlier]);
    }
    return time_s;
  }

  bool send_next(std::uint32_t from) {
    SteadyRank& sender = ranks_[from];
    if (sender.program->outgoing.empty()) return false;
    const collective::plan::Route& route = sender.program->outgoing.front();
    if (sender.sent == route.steps.size()) return false;
    SteadyRank& receiver = ranks_[route.peer];
    const std::uint32_t send_step = route.steps[sender.sent];
    const std::uint32_t receive_step = receiver.program->incoming.front().steps[sender.sent];
    const PlanStep& planned = receiver.program->plan.steps[receive_step];
    const double may_leave_s = waited_s(sender, send_step);
    const double may_land_s = planned.act == Act::receive_reduce ? 0 : waited_s(receiver, receive_step);
    if (may_leave_s == kUnknown || may_land_s == kUnknown) return false;
    const double begin_s = std::max({may_leave_s, may_land_s, sender.free_s, sender.called_s, receiver.called_s});
    sender.free_s = begin_s + taken_s(from, route.peer, planned);
    ++sender.sent;
    finish(from, send_step, sender.free_s);
    receiver.held.emplace_back(receive_step, sender.free_s);
    land(route.peer);
    return true;
  }

  void finish(std::uint32_t index, std::uint32_t step, double time_s) {
    SteadyRank& rank = ranks_[index];
    rank.finished_s[step] = time_s;
    rank.left_s = std::max(rank.left_s, time_s);
    look_at(index);
    if (!rank.program->incoming.empty()) look_at(rank.program->incoming.front().peer);
    if (!rank.held.empty()) land(index);
  }

  void land(std::uint32_t index) {
    SteadyRank& rank = ranks_[index];
    while (!rank.held.empty()) {
      const auto [step, arrived_s] = rank.held.front();
      const double may_s = waited_s(rank, step);
      if (may_s == kUnknown) return;
      rank.held.erase(rank.held.begin());
      finish(index, step, std::max(arrived_s, may_s));
    }
  }

  void look_at(std::uint32_t index) {
    if (std::exchange(ranks_[index].is_listed, true)) return;
    list_.push_back(index);
  }

  [[nodiscard]] double taken_s(std::uint32_t from, std::uint32_t to, const PlanStep& step) const {
    const std::uint32_t out = network_.host_of(from), in = network_.host_of(to);
    const LinkCost& link = network_.link(from, to);
    const double bytes = chunk_bytes_ * step.chunk_count;
    const double slowness = out == in ? 1 : network_.slowness_between(out, in);
    const double reduce_s = step.act == Act::receive_reduce ? link.gamma_s_per_byte : 0;
    return link.alpha_s + bytes * (link.beta_s_per_byte * slowness + reduce_s);
  }

  const Network& network_;
  const double chunk_bytes_;
  std::vector<SteadyRank> ranks_;
  std::vector<std::uint32_t> list_;
};

}  // namespace

bool is_steady(const Network& network, const collective::replay::Ensemble& ensemble) {
  if (ensemble.rotates()) return false;
  std::vector<int> out(network.hosts(), 0), in(network.hosts(), 0);
  for (std::uint32_t rank = 0; rank < ensemble.ranks; ++rank) {
    const Program& program = ensemble.programs[rank];
    if (program.outgoing.size() > 1 || program.incoming.size() > 1) return false;
    for (const collective::plan::Route& route : program.outgoing) {
      const std::uint32_t here = network.host_of(rank), there = network.host_of(route.peer);
      if (here != there && (++out[here] > 1 || ++in[there] > 1)) return false;
    }
  }
  return true;
}

std::vector<double> run_steady(const Network& network, const collective::replay::Ensemble& ensemble,
                               std::uint64_t bytes, const std::vector<double>& called_s) {
  return Recurrence(network, ensemble.programs, bytes).run(called_s);
}

// Let every rank send messages m = 0 ... M-1 to its one successor, M >= N-1, and let message m wait for the arrival of
// message m-1. If all ranks call together, they proceed together without a pause and take d_0 + ... + d_M-1. If rank x
// calls at c, its message m ends at c + d_0 + ... + d_m or later. Its successor's message m+1 waits for that, and so
// on: after N-1 messages every rank is as late as x. No rank can be later than if all had called with the last one.
bool leaves_together(const collective::replay::Ensemble& ensemble) {
  if (!ensemble.rotates()) return false;
  const Program& program = ensemble.programs[0];
  if (program.outgoing.size() != 1 || program.incoming.size() != 1) return false;
  const auto& sends = program.outgoing[0].steps;
  const auto& receives = program.incoming[0].steps;
  if (sends.size() != receives.size() || sends.size() + 1 < ensemble.ranks) return false;
  if (std::gcd(program.outgoing[0].peer, ensemble.ranks) != 1) return false;
  for (std::size_t m = 1; m < sends.size(); ++m)
    if (std::ranges::find(program.waits[sends[m]], receives[m - 1]) == program.waits[sends[m]].end()) return false;
  return true;
}

}  // namespace syncopate::simulate
