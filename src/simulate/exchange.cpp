// Exchange: the events of one collective, and the rules by which a message may begin.
#include "simulate/exchange.hpp"

#include <algorithm>
#include <limits>

#include "base/require.hpp"
#include "collective/plan/chunk_layout.hpp"
#include "simulate/events.hpp"
#include "simulate/segments.hpp"
#include "simulate/steady.hpp"

namespace syncopate::simulate {

namespace {

using collective::plan::Program;
using collective::plan::Route;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

struct Rank {
  const collective::plan::Program* program = nullptr;
  std::vector<bool> finished;         ///< by step
  std::vector<std::size_t> sent;      ///< by outgoing route: messages begun
  std::vector<std::size_t> received;  ///< by incoming route: messages begun
  std::vector<std::uint32_t> held;    ///< receives whose bytes have arrived, and whose earlier steps have not finished
  std::size_t unfinished = 0;
  double called_s = 0, left_s = 0;
  bool sends = false, receives = false;  ///< at this moment
};

/// A message on its way; both kNone: a rank's call.
struct Arrival {
  std::uint32_t from = 0, to = 0, send_step = kNone, receive_step = kNone;
};

struct Match {
  std::size_t out = 0, in = 0;
  std::uint32_t send_step = kNone, receive_step = 0, to = 0;
};

class Events final {
 public:
  Events(const Network& network, const std::vector<collective::plan::Program>& programs, std::uint64_t bytes)
      : network_(network), bytes_(bytes), ranks_(programs.size()), ports_(network) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      ranks_[i].program = &programs[i];
      ranks_[i].finished.assign(programs[i].plan.steps.size(), false);
      ranks_[i].sent.assign(programs[i].outgoing.size(), 0);
      ranks_[i].received.assign(programs[i].incoming.size(), 0);
      ranks_[i].unfinished = programs[i].plan.steps.size();
    }
  }

  std::vector<double> run(const std::vector<double>& called_s) {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].called_s = ranks_[rank].left_s = called_s[rank];
      queue_.push(called_s[rank], {.from = rank, .to = rank});
    }
    while (!queue_.empty()) {
      const Arrival arrival = queue_.pop();
      if (arrival.send_step != kNone) arrive(arrival);
      wake(arrival.from);
      if (arrival.to != arrival.from) wake(arrival.to);
    }
    return ends_of(ranks_);
  }

 private:
  [[nodiscard]] static bool is_ready(const Rank& rank, std::uint32_t step) {
    return std::ranges::all_of(rank.program->waits[step],
                               [&](std::uint32_t earlier) { return rank.finished[earlier]; });
  }

  void finish(Rank& rank, std::uint32_t step) {
    rank.finished[step] = true;
    rank.left_s = queue_.now_s();
    --rank.unfinished;
  }

  void arrive(const Arrival& arrival) {
    ranks_[arrival.from].sends = false;
    ranks_[arrival.to].receives = false;
    finish(ranks_[arrival.from], arrival.send_step);
    ranks_[arrival.to].held.push_back(arrival.receive_step);
    land(ranks_[arrival.from]);
    land(ranks_[arrival.to]);
  }

  /// What has arrived is taken in plan order, as far as the steps before it have finished.
  void land(Rank& rank) {
    for (std::size_t i = 0; i < rank.held.size();) {
      if (!is_ready(rank, rank.held[i])) {
        ++i;
        continue;
      }
      finish(rank, rank.held[i]);
      rank.held.erase(rank.held.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
  }

  /// Something changed at `rank`: it may send, or be sent to.
  void wake(std::uint32_t rank) {
    begin_from(rank);
    for (const collective::plan::Route& route : ranks_[rank].program->incoming) begin_from(route.peer);
  }

  /// The first message in plan order that `from` may begin now.
  [[nodiscard]] Match choose(std::uint32_t from) const {
    Match best;
    const Rank& sender = ranks_[from];
    for (std::size_t out = 0; out < sender.sent.size(); ++out) {
      const collective::plan::Route& route = sender.program->outgoing[out];
      if (sender.sent[out] == route.steps.size() || route.steps[sender.sent[out]] >= best.send_step) continue;
      const Rank& receiver = ranks_[route.peer];
      if (receiver.receives || receiver.called_s > queue_.now_s() || !is_ready(sender, route.steps[sender.sent[out]]))
        continue;
      const auto& incoming = receiver.program->incoming;
      const auto in = static_cast<std::size_t>(std::ranges::find(incoming, from, &collective::plan::Route::peer) -
                                               incoming.begin());
      if (in == incoming.size() || receiver.received[in] == incoming[in].steps.size()) continue;
      const std::uint32_t receive_step = incoming[in].steps[receiver.received[in]];
      const bool may_travel = receiver.program->plan.steps[receive_step].act == Act::receive_reduce;
      if (may_travel || is_ready(receiver, receive_step))
        best = {out, in, route.steps[sender.sent[out]], receive_step, route.peer};
    }
    return best;
  }

  void begin_from(std::uint32_t from) {
    if (ranks_[from].sends || ranks_[from].called_s > queue_.now_s()) return;
    const Match match = choose(from);
    if (match.send_step == kNone) return;
    ++ranks_[from].sent[match.out];
    ++ranks_[match.to].received[match.in];
    ranks_[from].sends = ranks_[match.to].receives = true;
    const double end_s = travel(from, match.to, ranks_[match.to].program->plan.steps[match.receive_step]);
    queue_.push(end_s, {from, match.to, match.send_step, match.receive_step});
  }

  /// When a message that begins now will have been received; takes its turn at the ports.
  [[nodiscard]] double travel(std::uint32_t from, std::uint32_t to, const PlanStep& step) {
    const std::uint32_t out = network_.host_of(from), in = network_.host_of(to);
    const LinkCost& link = network_.link(from, to);
    const Range range = collective::plan::ChunkLayout{bytes_, ranks_[to].program->plan.chunks}.run(step);
    const auto bytes = static_cast<double>(range.size());
    const double reduce_s = step.act == Act::receive_reduce ? bytes * link.gamma_s_per_byte : 0;
    const double begin_s = queue_.now_s() + link.alpha_s, taken_s = bytes * link.beta_s_per_byte;
    if (out == in) return begin_s + taken_s + reduce_s;
    return ports_.pass(out, in, begin_s, taken_s * network_.slowness_between(out, in)) + reduce_s;
  }

  const Network& network_;
  const std::uint64_t bytes_;
  std::vector<Rank> ranks_;
  Ports ports_;
  EventQueue<Arrival> queue_;
};

}  // namespace

std::vector<double> run_events(const Network& network, const std::vector<collective::plan::Program>& programs,
                               std::uint64_t bytes, const std::vector<double>& called_s) {
  return Events(network, programs, bytes).run(called_s);
}

const Exchanger::Programs& Exchanger::programs_of(const Call& call) {
  const PlanRequest request{.collective = call.collective,
                            .algorithm = call.algorithm,
                            .ranks = network_.ranks,
                            .bytes = call.bytes,
                            .ranks_per_host = static_cast<std::uint32_t>(network_.ranks_per_host)};
  const collective::Choice choice = collective::select::choose(request, {network_.inter, network_.intra});
  auto& programs = programs_[{choice.algorithm->name, choice.shape}];
  if (programs) return *programs;
  programs = std::make_unique<Programs>();
  for (std::uint32_t rank = 0; rank < choice.shape.size; ++rank)
    programs->push_back(collective::plan::compile(collective::build_plan(choice, rank)));
  return *programs;
}

std::vector<double> Exchanger::run(const Call& call, const std::vector<double>& called_s) {
  base::require(called_s.size() == static_cast<std::size_t>(network_.ranks), "{} ranks call, {} are there",
                called_s.size(), network_.ranks);
  const Programs& programs = programs_of(call);
  if (messages_ == Messages::segments) return run_segments(network_, programs, call.bytes, called_s);
  if (is_steady(network_, programs)) return run_steady(network_, programs, call.bytes, called_s);
  return run_events(network_, programs, call.bytes, called_s);
}

}  // namespace syncopate::simulate
