// Measuring for a fit: each algorithm at each size, until the time is spent.
#include "fit/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/rows.hpp"
#include "bench/worker.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"

namespace syncopate::tools::fit {

namespace {

using bench::Rows;
using SteadyClock = std::chrono::steady_clock;

constexpr int kMostPasses = 5;
constexpr std::size_t kLeastSizes = 2;  // one point makes no line

/// Calls with a root do not wait for each other, and a row of them shows how they overlap; barriers between them show
/// what one takes. The others show it by themselves, on ports as busy as in a training step.
bool overlaps(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

/// Those that `auto` would think of on these hosts.
std::vector<std::string> sensible(Collective collective, int ranks, const std::vector<std::uint32_t>& hosts) {
  PlanRequest request{.collective = collective, .ranks = ranks};
  request.hosts = hosts;
  std::vector<std::string> names;
  for (const RankedAlgorithm& entry : sort_algorithms(request)) names.push_back(entry.algorithm);
  return names;
}

std::vector<std::uint32_t> hosts_of(const Group& group) { return {group.hosts().begin(), group.hosts().end()}; }

std::vector<Collective> measured_collectives() {
  std::vector<Collective> collectives;
  for (const Collective collective : kCollectives)
    if (collective != Collective::allgather_v && collective != Collective::alltoall_v)
      collectives.push_back(collective);
  return collectives;
}

std::size_t rows_in_a_size(const std::vector<Collective>& collectives, int ranks,
                           const std::vector<std::uint32_t>& hosts) {
  std::size_t rows = 0;
  for (const Collective collective : collectives) rows += sensible(collective, ranks, hosts).size();
  return rows;
}

/// The passes over all collectives and sizes; rank 0's clock decides, for all ranks alike.
class Passes final {
 public:
  Passes(Group& group, const Effort& effort, std::vector<Collective> collectives)
      : group_(group),
        effort_(effort),
        collectives_(std::move(collectives)),
        rows_in_a_size_(rows_in_a_size(collectives_, group.size(), hosts_of(group))),
        budget_s_(budget_of_row_s(effort, rows_in_a_size_)) {}

  std::vector<Timing> run(int most_passes) {
    for (int pass = 0; pass < most_passes; ++pass) {
      const double begin = elapsed_s();
      if (pass == 0)
        sizes_ = ascend();
      else
        for (std::size_t i = 0; i < sizes_; ++i) measure_size(effort_.bytes[i]);
      if (!goes_on(2 * elapsed_s() - begin)) break;
    }
    return timings();
  }
  [[nodiscard]] std::size_t sizes() const { return sizes_; }  ///< how many of them, smallest first, were measured

 private:
  [[nodiscard]] double elapsed_s() const { return std::chrono::duration<double>(SteadyClock::now() - begin_).count(); }

  /// Whether what would end at `end_s` is still to be done.
  bool goes_on(double end_s) {
    std::int32_t yes = end_s <= effort_.limit_s ? 1 : 0;
    broadcast(group_, Buffer(&yes, 1, DType::i32), {.name = "fit: another one"});
    return yes == 1;
  }

  /// One pass; returns how many sizes it had time for. The next one takes as much longer as it is larger, at most.
  std::size_t ascend() {
    for (std::size_t i = 0; i < effort_.bytes.size(); ++i) {
      const double begin = elapsed_s();
      measure_size(effort_.bytes[i]);
      if (i + 1 == effort_.bytes.size() || i + 1 < kLeastSizes) continue;
      const double growth = static_cast<double>(effort_.bytes[i + 1]) / static_cast<double>(effort_.bytes[i]);
      const double lasted = elapsed_s() - begin;
      const bool grows = lasted > 3 * budget_s_ * static_cast<double>(rows_in_a_size_);
      if (!goes_on(elapsed_s() + lasted * (grows ? growth : 2))) return i + 1;
    }
    return effort_.bytes.size();
  }

  void measure_size(std::uint64_t bytes) {
    for (const Collective collective : collectives_) {
      const std::uint64_t step = sizeof(float) * (collective == Collective::alltoall ? group_.size() : 1);
      bench::Task task{.collective = collective, .ranks = group_.size()};
      task.bytes = {(bytes + step - 1) / step * step};
      if (collective == Collective::barrier) task.bytes = {sizeof(float)};
      task.algorithms = sensible(collective, group_.size(), hosts_of(group_));
      task.rounds = 1;
      task.budget_s = budget_s_;
      task.apart = overlaps(collective);
      task.memories = {std::string(name_of(effort_.memory))};
      bench::measure_task(group_, task, rows_);
    }
  }

  [[nodiscard]] std::vector<Timing> timings() const {
    if (!rows_.all_correct()) throw Corrupt("a collective gave a wrong answer; nothing is written");
    std::vector<Timing> timings;
    double barrier_s = std::numeric_limits<double>::infinity();
    for (const nlohmann::json& row : rows_.json()) {
      timings.push_back({.collective = row.at("collective"),
                         .algorithm = row.at("algorithm"),
                         .ranks = row.at("ranks"),
                         .bytes = row.at("bytes"),
                         .seconds = row.at("seconds").at("min"),  // whatever else the machine does is not the network's
                         .cpu_seconds = row.at("cpu_seconds")});
      if (timings.back().collective == "barrier") barrier_s = std::min(barrier_s, timings.back().seconds);
    }
    // A barrier behind a call overlaps its end: less than a barrier's time is left of it.
    constexpr double kLeastShare = 0.1;
    for (Timing& timing : timings)
      if (overlaps(collective_named(timing.collective)))
        timing.seconds = std::max(timing.seconds - barrier_s, kLeastShare * timing.seconds);
    std::ranges::stable_sort(timings, {}, &Timing::collective);
    return timings;
  }

  Group& group_;
  const Effort& effort_;
  std::vector<Collective> collectives_;
  std::size_t rows_in_a_size_;
  double budget_s_;
  Rows rows_{0};
  std::size_t sizes_ = 0;
  SteadyClock::time_point begin_ = SteadyClock::now();
};

/// The ranks of each host, if neighbours share hosts of one size; else 1, which fits no such group.
int ranks_per_host(const Group& group) {
  const std::vector<int>& hosts = group.hosts();
  const auto per_host = static_cast<int>(std::ranges::count(hosts, hosts.front()));
  for (int rank = 0; rank < group.size(); ++rank)
    if (hosts[static_cast<std::size_t>(rank)] != rank / per_host) return 1;
  return per_host;
}

/// Few collectives and sizes are enough for a link: one where latency counts, one where bytes do, one between.
std::vector<Timing> measure_links(Group* group, Effort effort) {
  if (group == nullptr || group->size() < 2) return {};
  effort.bytes = {256, 64 << 10, 1 << 20};
  const std::vector<Collective> collectives{Collective::allreduce, Collective::reduce_scatter, Collective::allgather,
                                            Collective::barrier};
  return Passes(*group, effort, collectives).run(1);
}

}  // namespace

void require_enough_time(const Effort& effort, int ranks, const std::vector<std::uint32_t>& hosts) {
  const std::size_t rows = rows_in_a_size(measured_collectives(), ranks, hosts);
  const auto sizes = static_cast<double>(std::min(kLeastSizes, effort.bytes.size()));
  const double least_s = sizes * static_cast<double>(rows) * effort.budget_s;
  if (least_s > effort.limit_s)
    throw Misuse(
        fmt::format("--limit {:g} is too short: on {} ranks {} rows of {} sizes take {:.2g} s at --budget {:g}; "
                    "allowed: a limit of "
                    "at least that, or a smaller budget",
                    effort.limit_s, ranks, rows, sizes, least_s, effort.budget_s));
}

Measured measure(Group& group, const Effort& effort) {
  require_enough_time(effort, group.size(), hosts_of(group));
  Measured measured{.transport = group.transport(),
                    .memory = group.transport() == "shm" ? effort.memory : Memory::own,
                    .ranks_per_host = ranks_per_host(group)};
  const std::vector<int>& hosts = group.hosts();
  const int host = hosts[static_cast<std::size_t>(group.rank())];
  const auto largest = std::ranges::max(hosts) + 1;
  if (largest > 1 && largest < group.size()) {
    const auto local = group.split(host, group.rank());
    const bool leads = local->rank() == 0;
    const auto leaders = group.split(leads ? 0 : -1, group.rank());
    measured.within = measure_links(local.get(), effort);
    barrier(group);
    measured.between = measure_links(leaders.get(), effort);
    barrier(group);
  }
  Passes passes(group, effort, measured_collectives());
  measured.all = passes.run(kMostPasses);
  measured.left_out.assign(effort.bytes.begin() + static_cast<std::ptrdiff_t>(passes.sizes()), effort.bytes.end());
  return measured;
}

}  // namespace syncopate::tools::fit
