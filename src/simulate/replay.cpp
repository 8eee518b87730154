// Replay: sleeps until gradients are ready, and exchanges the profile's bytes.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "base/clock.hpp"
#include "base/require.hpp"
#include "schedule/dispatch.hpp"
#include "schedule/median.hpp"
#include "simulate/candidate.hpp"
#include "simulate/costs.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {

namespace {

using schedule::Bucket;

constexpr double kLongCallSeconds = 0.2;  // longer calls are measured fewer times

/// The collectives of an exchange, one after the other on each bucket.
std::vector<Collective> collectives_of(const std::string& exchange) {
  if (exchange == "allreduce") return {Collective::allreduce};
  base::require(exchange == "reduce_broadcast", "no exchange '{}' in a replay; allowed: allreduce, reduce_broadcast",
                exchange);
  return {Collective::reduce, Collective::broadcast};
}

base::Time now() { return std::chrono::steady_clock::now(); }

void wait_all(std::vector<Work> works) {
  for (Work& work : works) work.wait();
}

/// The ready times of one step's layers.
class Pass final {
 public:
  explicit Pass(const std::vector<double>& ready_s) : ready_s_(ready_s) {}
  void await(std::size_t layer) const { std::this_thread::sleep_until(begin_ + base::from_seconds(ready_s_[layer])); }
  [[nodiscard]] bool has_come(std::size_t layer) const { return now() >= begin_ + base::from_seconds(ready_s_[layer]); }
  [[nodiscard]] double elapsed_s() const { return base::seconds(now() - begin_); }

 private:
  const std::vector<double>& ready_s_;
  const base::Time begin_ = now();
};

}  // namespace

class Replay::Impl final {
 public:
  Impl(Group& group, const Profile& profile);

  MeasuredCost measure(const std::string& algorithm, int repeats, const std::string& exchange);
  std::vector<double> run(const Cluster& cluster, const ReplayOptions& options);

 private:
  [[nodiscard]] Buffer span(const Bucket& bucket);
  [[nodiscard]] std::vector<Work> start_all(const std::vector<Collective>& collectives, Buffer buffer,
                                            const CollectiveOptions& options);
  void exchange_planned(const Pass& pass, const schedule::Partition& partition, const ReplayOptions& options);
  void exchange_online(const Pass& pass, const ReplayOptions& options);
  void agree_on_longest(std::vector<double>& seconds);

  Group& group_;
  const schedule::Timeline timeline_;
  const std::vector<double> ready_s_;
  std::vector<std::size_t> offsets_;  ///< by layer, in elements, and the end of the last one
  std::vector<float> gradients_;
};

Replay::Impl::Impl(Group& group, const Profile& profile)
    : group_(group), timeline_(simulate::timeline_of(profile)), ready_s_(schedule::ready_times(timeline_)) {
  offsets_.push_back(0);
  for (const schedule::Layer& layer : timeline_.layers) {
    base::require(layer.bytes % sizeof(float) == 0, "layer '{}' has {} bytes, which is not a multiple of 4", layer.name,
                  layer.bytes);
    offsets_.push_back(offsets_.back() + layer.bytes / sizeof(float));
  }
  gradients_.assign(offsets_.back(), 0);
}

Buffer Replay::Impl::span(const Bucket& bucket) {
  const std::size_t begin = offsets_[bucket.first], end = offsets_[bucket.last + 1];
  return {gradients_.data() + begin, end - begin, DType::f32};
}

void Replay::Impl::agree_on_longest(std::vector<double>& seconds) {
  allreduce(group_, {seconds.data(), seconds.size(), DType::f64}, {.op = ReduceOp::max, .name = "replay: times"});
}

std::vector<Work> Replay::Impl::start_all(const std::vector<Collective>& collectives, Buffer buffer,
                                          const CollectiveOptions& options) {
  std::vector<Work> works;
  for (const Collective collective : collectives) works.push_back(start(group_, collective, buffer, options));
  return works;
}

MeasuredCost Replay::Impl::measure(const std::string& algorithm, int repeats, const std::string& exchange) {
  const std::vector<Collective> collectives = collectives_of(exchange);
  MeasuredCost cost{.algorithm = algorithm == "auto" ? "" : algorithm};
  const auto ranks = static_cast<std::size_t>(group_.size());
  double before_s = 0;
  for (std::size_t count = ranks;; count = std::min(2 * count, gradients_.size())) {
    const auto calls = std::max(2, static_cast<int>(repeats / std::max(1.0, 2 * before_s / kLongCallSeconds)));
    std::vector<double> seconds;
    for (int i = 0; i <= calls; ++i) {
      barrier(group_);
      const base::Time begin = now();
      wait_all(start_all(collectives, {gradients_.data(), count, DType::f32},
                         {.algorithm = algorithm, .name = "replay: measure"}));
      if (i > 0) seconds.push_back(base::seconds(now() - begin));
    }
    agree_on_longest(seconds);
    before_s = schedule::median(seconds);
    cost.table.emplace_back(static_cast<double>(count * sizeof(float)), before_s);
    if (count >= gradients_.size()) return cost;
  }
}

std::vector<double> Replay::Impl::run(const Cluster& cluster, const ReplayOptions& options) {
  const simulate::Candidate candidate =
      simulate::candidate_of(options.policy, {.fusion_bytes = options.fusion_bytes, .ranks = group_.size()});
  const bool decides_late = candidate.decides_late();
  const auto partition =
      decides_late
          ? schedule::Partition{}
          : candidate.partition(timeline_, simulate::costs::cost_of_cluster(cluster, offsets_.back() * sizeof(float)));
  std::vector<double> seconds;
  for (int step = 0; step < options.steps; ++step) {
    barrier(group_);
    const Pass pass(ready_s_);
    if (decides_late)
      exchange_online(pass, options);
    else
      exchange_planned(pass, partition, options);
    seconds.push_back(pass.elapsed_s());
  }
  agree_on_longest(seconds);
  return seconds;
}

void Replay::Impl::exchange_planned(const Pass& pass, const schedule::Partition& partition,
                                    const ReplayOptions& options) {
  const std::vector<Collective> collectives = collectives_of(options.exchange);
  std::vector<Work> works;
  for (const Bucket& bucket : partition) {
    pass.await(bucket.first);
    std::ranges::move(start_all(collectives, span(bucket),
                                {.algorithm = options.algorithm, .name = timeline_.layers[bucket.first].name}),
                      std::back_inserter(works));
  }
  wait_all(std::move(works));
}

/// Whenever the channel is free, exchanges all gradients that are ready on every rank, as the synchronizer does.
void Replay::Impl::exchange_online(const Pass& pass, const ReplayOptions& options) {
  const std::vector<Collective> collectives = collectives_of(options.exchange);
  schedule::OnlineDispatch dispatch(timeline_.layers.size());
  while (!dispatch.all_sent()) {
    const std::size_t awaited = dispatch.frontier() - 1;
    pass.await(awaited);
    for (std::size_t layer = awaited + 1; layer-- > 0 && pass.has_come(layer);) dispatch.ready(layer);
    auto first = static_cast<std::int64_t>(dispatch.offer().value_or(awaited));
    allreduce(group_, {&first, 1, DType::i64}, {.op = ReduceOp::max, .name = "replay: how far every rank is ready"});
    const Bucket bucket = dispatch.take(static_cast<std::size_t>(first));
    wait_all(start_all(collectives, span(bucket),
                       {.algorithm = options.algorithm, .name = timeline_.layers[bucket.first].name}));
  }
}

Replay::Replay(Group& group, const Profile& profile) : impl_(std::make_unique<Impl>(group, profile)) {}
Replay::~Replay() = default;
MeasuredCost Replay::measure(const std::string& algorithm, int repeats, const std::string& exchange) {
  return impl_->measure(algorithm, repeats, exchange);
}
std::vector<double> Replay::run(const Cluster& cluster, const ReplayOptions& options) {
  return impl_->run(cluster, options);
}

Profile dilated(Profile profile, double factor) {
  base::require(factor > 0, "a factor of {} for the times; allowed: above 0", factor);
  profile.forward_s *= factor;
  for (ProfileLayer& layer : profile.layers) layer.backward_s *= factor;
  return profile;
}

}  // namespace syncopate
