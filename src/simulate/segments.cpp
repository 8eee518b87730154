// Segments: events of segments on their way, and what each lets its receiver send on.
#include "simulate/segments.hpp"

#include <algorithm>
#include <queue>

#include "base/require.hpp"
#include "collective/execute.hpp"

namespace syncopate::simulate {

namespace {

using collective::Program;
using collective::Route;

/// A range of the vector that a step moves, and how far it has come.
struct Step {
  std::uint64_t begin = 0, end = 0, segment = 1;
  std::uint32_t segments = 0, posted = 0, finished = 0;  ///< finished segments are a prefix
  std::uint32_t partner = 0;                             ///< of a send: the receiver's step

  [[nodiscard]] std::uint64_t from(std::uint32_t index) const { return begin + index * segment; }
  [[nodiscard]] std::uint64_t to(std::uint32_t index) const { return std::min(from(index) + segment, end); }
  [[nodiscard]] std::uint64_t done_to() const { return finished == segments ? end : from(finished); }
};

struct Rank {
  const Program* program = nullptr;
  std::vector<Step> steps;
  std::vector<std::size_t> heads;                             ///< by outgoing route: steps posted as a whole
  std::vector<std::pair<std::uint32_t, std::uint32_t>> held;  ///< (step, segment) arrived, that must not be touched yet
  double called_s = 0, left_s = 0;
  double free_s = 0, copied_s = 0;  ///< of reducing, and of sending within its host
  std::size_t unfinished = 0;       ///< steps
};

/// A segment has arrived at `rank`, or has been reduced there; kCall: the rank calls.
constexpr std::uint32_t kCall = ~std::uint32_t{0};
struct Event {
  double time_s = 0;
  std::uint64_t number = 0;  ///< equal times: first begun, first served
  std::uint32_t rank = 0, step = kCall, segment = 0, send_step = 0;
  bool is_reduced = false;
  bool operator>(const Event& other) const {
    return time_s != other.time_s ? time_s > other.time_s : number > other.number;
  }
};

class Events final {
 public:
  Events(const Network& network, const std::vector<Program>& programs, std::uint64_t bytes)
      : network_(network), ranks_(programs.size()), out_s_(network.hosts()), in_s_(network.hosts()) {
    for (std::size_t i = 0; i < programs.size(); ++i) lay_out(ranks_[i], programs[i], bytes);
    for (std::uint32_t from = 0; from < ranks_.size(); ++from)
      for (const Route& route : programs[from].outgoing) pair(from, route);
  }

  std::vector<double> run(const std::vector<double>& called_s) {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].called_s = ranks_[rank].left_s = ranks_[rank].free_s = called_s[rank];
      queue_.push({.time_s = called_s[rank], .number = number_++, .rank = rank});
    }
    while (!queue_.empty()) {
      const Event event = queue_.top();
      queue_.pop();
      now_s_ = event.time_s;
      if (event.step != kCall) event.is_reduced ? finish(event.rank, event.step) : arrive(event);
      land(event.rank);
      post(event.rank);
    }
    std::vector<double> left_s;
    for (const Rank& rank : ranks_) {
      base::require(rank.unfinished == 0, "a plan of {} ranks does not end", ranks_.size());
      left_s.push_back(rank.left_s);
    }
    return left_s;
  }

 private:
  static void lay_out(Rank& rank, const Program& program, std::uint64_t bytes) {
    rank.program = &program;
    rank.heads.assign(program.outgoing.size(), 0);
    for (const PlanStep& planned : program.plan.steps) {
      const Range range = collective::Layout{bytes, program.plan.chunks}.run(planned);
      Step step{.begin = range.begin, .end = range.end, .segment = collective::segment_bytes(range.end - range.begin)};
      step.segments = static_cast<std::uint32_t>((step.end - step.begin + step.segment - 1) / step.segment);
      if (step.segments > 0) ++rank.unfinished;
      rank.steps.push_back(step);
    }
  }

  /// The k-th send of a route meets the k-th receive of the one that faces it.
  void pair(std::uint32_t from, const Route& route) {
    const auto& incoming = ranks_[route.peer].program->incoming;
    const auto facing = std::ranges::find(incoming, from, &Route::peer);
    base::require(facing != incoming.end() && facing->steps.size() == route.steps.size(), "a send without a receive");
    for (std::size_t i = 0; i < route.steps.size(); ++i) ranks_[from].steps[route.steps[i]].partner = facing->steps[i];
  }

  [[nodiscard]] static bool may_touch(const Rank& rank, std::uint32_t step, std::uint32_t segment) {
    const std::uint64_t to = rank.steps[step].to(segment);
    return std::ranges::all_of(rank.program->waits[step], [&](std::uint32_t earlier) {
      const Step& other = rank.steps[earlier];
      return other.begin >= to || other.done_to() >= std::min(to, other.end);
    });
  }

  void finish(std::uint32_t rank, std::uint32_t step) {
    if (++ranks_[rank].steps[step].finished < ranks_[rank].steps[step].segments) return;
    ranks_[rank].left_s = now_s_;
    --ranks_[rank].unfinished;
  }

  void arrive(const Event& event) {
    Rank& rank = ranks_[event.rank];
    const std::uint32_t from = rank.program->plan.steps[event.step].peer;
    finish(from, event.send_step);
    rank.held.emplace_back(event.step, event.segment);
    land(from);  // what waited for these bytes to have left
    post(from);
  }

  /// What has arrived is taken as far as the steps before it are through with its bytes.
  void land(std::uint32_t index) {
    Rank& rank = ranks_[index];
    if (rank.called_s > now_s_) return;
    for (std::size_t i = 0; i < rank.held.size();) {
      const auto [step, segment] = rank.held[i];
      if (!may_touch(rank, step, segment)) {
        ++i;
        continue;
      }
      rank.held.erase(rank.held.begin() + static_cast<std::ptrdiff_t>(i));
      take(index, step, segment);
      i = 0;
    }
  }

  void take(std::uint32_t index, std::uint32_t step, std::uint32_t segment) {
    Rank& rank = ranks_[index];
    const PlanStep& planned = rank.program->plan.steps[step];
    const double gamma = link_between(planned.peer, index).gamma_s_per_byte;
    if (planned.act != Act::receive_reduce || gamma == 0) return finish(index, step);
    const auto bytes = static_cast<double>(rank.steps[step].to(segment) - rank.steps[step].from(segment));
    rank.free_s = std::max(rank.free_s, now_s_) + bytes * gamma;
    queue_.push({rank.free_s, number_++, index, step, segment, 0, true});
  }

  void post(std::uint32_t from) {
    Rank& rank = ranks_[from];
    if (rank.called_s > now_s_) return;
    for (std::size_t out = 0; out < rank.heads.size(); ++out) {
      const Route& route = rank.program->outgoing[out];
      while (rank.heads[out] < route.steps.size()) {
        const std::uint32_t step = route.steps[rank.heads[out]];
        if (rank.steps[step].posted == rank.steps[step].segments) {
          ++rank.heads[out];
          continue;
        }
        if (!may_touch(rank, step, rank.steps[step].posted)) break;
        travel(from, route.peer, step);
      }
    }
  }

  [[nodiscard]] const LinkCost& link_between(std::uint32_t from, std::uint32_t to) const {
    return network_.host_of(from) == network_.host_of(to) ? network_.intra : network_.inter;
  }

  void travel(std::uint32_t from, std::uint32_t to, std::uint32_t send_step) {
    Step& step = ranks_[from].steps[send_step];
    const std::uint32_t out = network_.host_of(from), in = network_.host_of(to), segment = step.posted++;
    const LinkCost& link = link_between(from, to);
    double taken_s = static_cast<double>(step.to(segment) - step.from(segment)) * link.beta_s_per_byte;
    double end_s = 0;
    if (out == in) {
      end_s = ranks_[from].copied_s = std::max(now_s_ + link.alpha_s, ranks_[from].copied_s) + taken_s;
    } else {
      taken_s *= std::max(network_.slowness_of(out), network_.slowness_of(in));
      end_s = out_s_[out] = in_s_[in] = std::max({now_s_ + link.alpha_s, out_s_[out], in_s_[in]}) + taken_s;
    }
    queue_.push({end_s, number_++, to, step.partner, segment, send_step, false});
  }

  const Network& network_;
  std::vector<Rank> ranks_;
  std::vector<double> out_s_, in_s_;  ///< by host: when its port falls free
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::uint64_t number_ = 0;
  double now_s_ = 0;
};

}  // namespace

std::vector<double> run_segments(const Network& network, const std::vector<Program>& programs, std::uint64_t bytes,
                                 const std::vector<double>& called_s) {
  return Events(network, programs, bytes).run(called_s);
}

}  // namespace syncopate::simulate
