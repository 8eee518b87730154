// Training: the clocks of the ranks through forward pass, backward pass and exchanges.
#include "simulate/training.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "base/require.hpp"
#include "schedule/dispatch.hpp"

namespace syncopate::simulate {

namespace {

/// SplitMix64's finaliser (Steele, Lea & Flood, OOPSLA 2014): a bijection that hides patterns in its argument.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// A uniform number in (0, 1].
double uniform(std::uint64_t key) { return (static_cast<double>(mixed(key) >> 11) + 1) * 0x1p-53; }

/// exp(s z - s^2/2) has mean 1; s is chosen so that the standard deviation is `noise` (z by Box-Muller).
double factor(double noise, std::uint64_t key) {
  if (noise == 0) return 1;
  const double variance = std::log1p(noise * noise);
  const double z = std::sqrt(-2 * std::log(uniform(key))) * std::cos(2 * std::numbers::pi * uniform(~key));
  return std::exp(std::sqrt(variance) * z - variance / 2);
}

}  // namespace

bool is_random(const SimulateOptions& options) {
  return options.noise > 0 || std::ranges::any_of(options.slow_ranks, [](const auto& slow) { return slow.share < 1; });
}

void require_slow_rank(const Handicap& slow, int ranks) {
  base::require(slow.which >= 0 && slow.which < ranks && slow.factor > 0 && slow.share > 0 && slow.share <= 1,
                "rank {} is {} times as slow in {:g} of its steps; allowed: ranks 0 to {}, factors above 0, shares "
                "above 0, at most 1",
                slow.which, slow.factor, slow.share, ranks - 1);
}

Workload::Workload(const schedule::Timeline& timeline, SimulateOptions options)
    : timeline_(timeline), options_(std::move(options)) {
  for (const schedule::Layer& layer : timeline.layers) backward_s_ += layer.backward_s;
}

Work Workload::of(std::uint64_t step, std::uint32_t rank) const {
  const std::uint64_t key = mixed(mixed(options_.seed) ^ mixed(step << 32 | rank));
  double slowness = 1;
  for (const Handicap& slow : options_.slow_ranks) {
    const bool is_slow_now = slow.share >= 1 || uniform(mixed(key)) <= slow.share;
    if (slow.which == static_cast<int>(rank) && is_slow_now) slowness *= slow.factor;
  }
  Work work;
  for (std::size_t layer = 0; layer < timeline_.layers.size(); ++layer) {
    const double backward_s = timeline_.layers[layer].backward_s;
    const double share = backward_s_ > 0 ? backward_s / backward_s_ : 0;
    work.forward_s.push_back(timeline_.forward_s * share * slowness * factor(options_.noise, key ^ mixed(2 * layer)));
    work.backward_s.push_back(backward_s * slowness * factor(options_.noise, key ^ mixed(2 * layer + 1)));
  }
  return work;
}

namespace {

/// Adds a span of rank 0 to the recorder, if there is one.
void note(const Training& training, std::size_t rank, const Span& span) {
  if (training.recorder != nullptr && rank == 0) training.recorder->add(span);
}

/// All ranks during one step. Earlier exchanges have slowed computing on every rank (schedule/evaluate).
class TrainingStep final {
 public:
  TrainingStep(const Training& training, std::uint64_t number, const std::vector<double>& forward_done_s)
      : training_(training), ready_s_(training.ranks), computed_s_(training.ranks), free_s_(training.ranks, 0) {
    for (std::uint32_t rank = 0; rank < training.ranks; ++rank) {
      const Work work = training.workload.of(number, rank);
      double now_s = forward_done_s[rank];
      ready_s_[rank].resize(work.backward_s.size());
      for (std::size_t layer = work.backward_s.size(); layer-- > 0;) {
        const double begin_s = now_s;
        ready_s_[rank][layer] = now_s += work.backward_s[layer];
        note(training, rank, {"backward", training.timeline.layers[layer].name, begin_s, now_s});
      }
      computed_s_[rank] = now_s;
    }
  }

  [[nodiscard]] double ready_s(std::size_t rank, std::size_t layer) const { return ready_s_[rank][layer] + stretch_s_; }
  [[nodiscard]] double free_s(std::size_t rank) const { return free_s_[rank]; }
  [[nodiscard]] double computed_s(std::size_t rank) const { return computed_s_[rank]; }

  /// Every rank calls when its gradients are ready and its channel is free, but not before `earliest_s`.
  void exchange(Collective collective, const schedule::Bucket& bucket,
                const std::function<double(std::size_t)>& earliest_s) {
    std::vector<double> called_s;
    for (std::size_t rank = 0; rank < training_.ranks; ++rank)
      called_s.push_back(std::max({free_s_[rank], ready_s(rank, bucket.first), earliest_s(rank)}));
    const std::size_t bytes = schedule::bytes_of(training_.timeline, bucket);
    free_s_ = training_.channel(collective, bytes, called_s);
    const double taken_s =
        (collective == Collective::allreduce ? 1 : 0.5) * training_.cpu_s_per_byte * static_cast<double>(bytes);
    for (std::size_t rank = 0; rank < training_.ranks; ++rank) {
      free_s_[rank] = std::max(free_s_[rank], called_s[rank] + taken_s);
      note(training_, rank, {"exchange", name_of(collective, bucket), called_s[rank], free_s_[rank], bytes});
      slow_down(rank, called_s[rank], taken_s);
    }
    stretch_s_ += taken_s;
  }

  /// The time at which each rank has finished computing and exchanging.
  [[nodiscard]] std::vector<double> ends_s() const {
    std::vector<double> ends;
    for (std::size_t rank = 0; rank < training_.ranks; ++rank)
      ends.push_back(std::max(free_s_[rank], computed_s_[rank]));
    return ends;
  }

 private:
  /// "gather 12..7", "12": layers, the last one first.
  [[nodiscard]] static std::string name_of(Collective collective, const schedule::Bucket& bucket) {
    const char* part = collective == Collective::reduce_scatter ? "scatter " : "gather ";
    std::string name = collective == Collective::allreduce ? "" : part;
    name += std::to_string(bucket.last + 1);
    return bucket.first == bucket.last ? name : name + ".." + std::to_string(bucket.first + 1);
  }

  /// Delays the computing that overlaps an exchange that begins at `begin_s` and takes `taken_s`.
  void slow_down(std::size_t rank, double begin_s, double taken_s) {
    const double left_s = computed_s_[rank] - begin_s, duration_s = free_s_[rank] - begin_s;
    if (left_s <= 0 || taken_s <= 0) return;
    const double speed = 1 - taken_s / duration_s;
    computed_s_[rank] = begin_s + (speed * duration_s > left_s ? left_s / speed : left_s + taken_s);
  }

  const Training& training_;
  std::vector<std::vector<double>> ready_s_;  ///< by rank and layer, without communication
  std::vector<double> computed_s_;            ///< by rank: end of the backward pass
  std::vector<double> free_s_;                ///< by rank: time from which its channel is free
  double stretch_s_ = 0;
};

double last_of(const std::vector<double>& times) { return *std::ranges::max_element(times); }
double at_once(std::size_t /*rank*/) { return 0; }

/// Forward passes that do not wait for communication.
std::vector<double> forward_done(const Training& training, std::uint64_t number, std::vector<double> now_s) {
  if (training.recorder != nullptr) training.recorder->begin_step(last_of(now_s));
  for (std::uint32_t rank = 0; rank < training.ranks; ++rank) {
    const double begin_s = now_s[rank];
    for (const double seconds : training.workload.of(number, rank).forward_s) now_s[rank] += seconds;
    note(training, rank, {"forward", "forward", begin_s, now_s[rank]});
  }
  return now_s;
}

/// One step by the event rule on all ranks.
class Agreeing final {
 public:
  Agreeing(const Training& training, TrainingStep& step)
      : training_(training),
        step_(step),
        dispatches_(training.ranks, schedule::OnlineDispatch(training.timeline.layers.size())),
        reported_(training.ranks, training.timeline.layers.size()) {}

  void run() {
    while (!dispatches_.front().all_sent()) {
      std::vector<double> entered_s;
      std::size_t first = 0;
      for (std::size_t rank = 0; rank < dispatches_.size(); ++rank) {
        entered_s.push_back(enter(rank));
        first = std::max(first, *dispatches_[rank].offer());
      }
      const std::vector<double> agreed_s = training_.agreement(entered_s);
      schedule::Bucket bucket;
      for (schedule::OnlineDispatch& dispatch : dispatches_) bucket = dispatch.take(first);
      step_.exchange(Collective::allreduce, bucket, [&](std::size_t rank) { return agreed_s[rank]; });
    }
  }

 private:
  /// Returns the time at which the rank has something to offer; its dispatch then holds all gradients that are ready.
  double enter(std::size_t rank) {
    const std::size_t awaited = dispatches_[rank].frontier() - 1;
    const double now_s = std::max(step_.free_s(rank), step_.ready_s(rank, awaited));
    std::size_t& next = reported_[rank];
    while (next > 0 && (next > awaited || step_.ready_s(rank, next - 1) <= now_s)) dispatches_[rank].ready(--next);
    return now_s;
  }

  const Training& training_;
  TrainingStep& step_;
  std::vector<schedule::OnlineDispatch> dispatches_;  ///< by rank
  std::vector<std::size_t> reported_;  ///< by rank: the layers from this one on are reported to its dispatch
};

/// Steps whose forward passes do not wait for communication. Returns the end of each on every rank.
std::vector<double> run_steps(const Training& training, int steps,
                              const std::function<void(TrainingStep&)>& exchange_all) {
  std::vector<double> ends, now_s(training.ranks, 0);
  for (std::uint64_t number = 0; number < static_cast<std::uint64_t>(steps); ++number) {
    TrainingStep step(training, number, forward_done(training, number, now_s));
    exchange_all(step);
    now_s = step.ends_s();
    ends.push_back(last_of(now_s));
    if (training.recorder != nullptr) training.recorder->end_step(ends.back());
  }
  return ends;
}

/// When each rank ends a forward pass that waits for each bucket's all-gather (`gathered_s`, by bucket and rank). While
/// one bucket's layers compute, the next bucket's all-gather runs and slows them.
std::vector<double> forward_behind(const Training& training, const schedule::Partition& partition, std::uint64_t number,
                                   const std::vector<std::vector<double>>& gathered_s) {
  std::vector<double> now_s(training.ranks, 0);
  for (std::uint32_t rank = 0; rank < training.ranks; ++rank) {
    const Work work = training.workload.of(number, rank);
    for (std::size_t bucket = partition.size(); bucket-- > 0;) {
      now_s[rank] = std::max(now_s[rank], gathered_s[bucket][rank]);
      const double begin_s = now_s[rank];
      for (std::size_t layer = partition[bucket].first; layer <= partition[bucket].last; ++layer)
        now_s[rank] += work.forward_s[layer];
      note(training, rank, {"forward", "forward", begin_s, now_s[rank]});
      if (number == 0 || bucket == 0) continue;
      const std::size_t bytes = schedule::bytes_of(training.timeline, partition[bucket - 1]);
      now_s[rank] += training.cpu_s_per_byte / 2 * static_cast<double>(bytes);
    }
  }
  return now_s;
}

}  // namespace

std::vector<Span> SpanRecorder::last_step() const {
  std::vector<Span> spans;
  for (Span span : spans_) {
    if (span.end_s <= begin_s_ || span.begin_s >= end_s_) continue;
    span.begin_s = std::max(0.0, span.begin_s - begin_s_);
    span.end_s = std::min(span.end_s, end_s_) - begin_s_;
    spans.push_back(std::move(span));
  }
  return spans;
}

std::vector<double> run_partition(const Training& training, const schedule::Partition& partition, int steps) {
  return run_steps(training, steps, [&](TrainingStep& step) {
    for (const schedule::Bucket& bucket : partition) step.exchange(Collective::allreduce, bucket, at_once);
  });
}

std::vector<double> run_online(const Training& training, int steps) {
  return run_steps(training, steps, [&](TrainingStep& step) { Agreeing(training, step).run(); });
}

std::vector<double> run_dear(const Training& training, const schedule::Partition& partition, int steps) {
  std::vector<double> ends;
  std::vector<std::vector<double>> gathered_s(partition.size(), std::vector<double>(training.ranks, 0));
  for (int number = 0; number < steps; ++number) {
    const auto index = static_cast<std::uint64_t>(number);
    if (training.recorder != nullptr) training.recorder->begin_step(ends.empty() ? 0 : ends.back());
    TrainingStep step(training, index, forward_behind(training, partition, index, gathered_s));
    for (const schedule::Bucket& bucket : partition) step.exchange(Collective::reduce_scatter, bucket, at_once);
    double end_s = 0;
    for (std::size_t rank = 0; rank < training.ranks; ++rank) end_s = std::max(end_s, step.computed_s(rank));
    ends.push_back(end_s);
    if (training.recorder != nullptr) training.recorder->end_step(end_s);
    for (std::size_t bucket = partition.size(); bucket-- > 0;) {
      step.exchange(Collective::allgather, partition[bucket], at_once);
      for (std::size_t rank = 0; rank < training.ranks; ++rank)
        gathered_s[bucket][rank] = std::max(step.free_s(rank), step.computed_s(rank));
    }
  }
  return ends;
}

}  // namespace syncopate::simulate
