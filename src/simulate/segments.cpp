// Segments: events of segments on their way, and what each lets its receiver send on.
#include "simulate/segments.hpp"

#include <algorithm>

#include "base/require.hpp"
#include "collective/engine/execute.hpp"
#include "simulate/events.hpp"

namespace syncopate::simulate {

namespace {

using collective::plan::Program;
using collective::plan::Route;

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
  const collective::plan::Program* program = nullptr;
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
  std::uint32_t rank = 0, step = kCall, segment = 0, send_step = 0;
  bool is_reduced = false;
};

class Events final {
 public:
  Events(const Network& network, const std::vector<collective::plan::Program>& programs, std::uint64_t bytes)
      : network_(network), ranks_(programs.size()), ports_(network) {
    for (std::size_t i = 0; i < programs.size(); ++i) lay_out(i, programs[i], bytes);
    for (std::uint32_t from = 0; from < ranks_.size(); ++from)
      for (const Route& route : programs[from].outgoing) pair(from, route);
  }

  std::vector<double> run(const std::vector<double>& called_s) {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].called_s = ranks_[rank].left_s = ranks_[rank].free_s = called_s[rank];
      queue_.push(called_s[rank], {.rank = rank});
    }
    while (!queue_.empty()) {
      const Event event = queue_.pop();
      if (event.step != kCall) event.is_reduced ? finish(event.rank, event.step) : arrive(event);
      land(event.rank);
      post(event.rank);
    }
    return ends_of(ranks_);
  }

 private:
  void lay_out(std::size_t index, const collective::plan::Program& program, std::uint64_t bytes) {
    Rank& rank = ranks_[index];
    const std::uint32_t host = network_.host_of(static_cast<std::uint32_t>(index));
    rank.program = &program;
    rank.heads.assign(program.outgoing.size(), 0);
    for (const PlanStep& planned : program.plan.steps) {
      const Range range = collective::plan::ChunkLayout{bytes, program.plan.chunks}.run(planned);
      const bool in_memory = network_.host_of(planned.peer) == host;
      Step step{.begin = range.begin,
                .end = range.end,
                .segment = collective::engine::segment_bytes(
                    range.end - range.begin, in_memory ? transport::kMemoryFrames : transport::kWireFrames)};
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
    ranks_[rank].left_s = queue_.now_s();
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
    if (rank.called_s > queue_.now_s()) return;
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
    const double gamma = network_.link(planned.peer, index).gamma_s_per_byte;
    if (planned.act != Act::receive_reduce || gamma == 0) return finish(index, step);
    const auto bytes = static_cast<double>(rank.steps[step].to(segment) - rank.steps[step].from(segment));
    rank.free_s = std::max(rank.free_s, queue_.now_s()) + bytes * gamma;
    queue_.push(rank.free_s, {index, step, segment, 0, true});
  }

  void post(std::uint32_t from) {
    Rank& rank = ranks_[from];
    if (rank.called_s > queue_.now_s()) return;
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

  void travel(std::uint32_t from, std::uint32_t to, std::uint32_t send_step) {
    Step& step = ranks_[from].steps[send_step];
    const std::uint32_t out = network_.host_of(from), in = network_.host_of(to), segment = step.posted++;
    const LinkCost& link = network_.link(from, to);
    const double begin_s = queue_.now_s() + link.alpha_s;
    const double taken_s = static_cast<double>(step.to(segment) - step.from(segment)) * link.beta_s_per_byte;
    const double end_s = out == in ? ranks_[from].copied_s = std::max(begin_s, ranks_[from].copied_s) + taken_s
                                   : ports_.pass(out, in, begin_s, taken_s * network_.slowness_between(out, in));
    queue_.push(end_s, {to, step.partner, segment, send_step, false});
  }

  const Network& network_;
  std::vector<Rank> ranks_;
  Ports ports_;
  EventQueue<Event> queue_;
};

}  // namespace

std::vector<double> run_segments(const Network& network, const std::vector<collective::plan::Program>& programs,
                                 std::uint64_t bytes, const std::vector<double>& called_s) {
  return Events(network, programs, bytes).run(called_s);
}

}  // namespace syncopate::simulate
