// History: the event loop of workers and servers in virtual time.
#include "server/history.hpp"

#include <algorithm>
#include <numeric>

namespace syncopate::server {

namespace {

/// One partition as one worker has it.
struct Copy {
  std::vector<Clock> seen;  ///< steps of each worker that the weights contain
  Clock fetched = 0, sent = 0, wanted = 0;
  double significance = 0;
  bool has_asked = false;
};

struct Worker {
  Clock clock = 0;
  bool computes = false;
  double idle_since_s = 0;
  std::vector<Copy> copies;
};

/// A server's side of one partition.
struct Shard {
  std::vector<Clock> applied;
  std::map<std::size_t, Clock> asks;  ///< worker -> its clock; unanswered
  [[nodiscard]] Clock least() const { return *std::ranges::min_element(applied); }
};

class Run final {
 public:
  Run(const Rule& rule, const Scenario& scenario)
      : rule_(rule), scenario_(scenario), workers_(scenario.workers), shards_(scenario.partitions) {
    for (Worker& worker : workers_)
      worker.copies.assign(scenario.partitions, {.seen = std::vector<Clock>(scenario.workers)});
    for (Shard& shard : shards_) shard.applied.assign(scenario.workers, 0);
  }

  History play() && {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) begin(worker);
    while (!events_.empty()) {
      const auto first = events_.begin();
      now_s_ = first->first;
      const auto happens = std::move(first->second);
      events_.erase(first);
      happens();
    }
    for (const Worker& worker : workers_) history_.ended.push_back(worker.clock);
    for (const Shard& shard : shards_) history_.applied.push_back(shard.applied);
    return std::move(history_);
  }

 private:
  void after(double seconds, std::function<void()> happens) { events_.emplace(now_s_ + seconds, std::move(happens)); }

  /// Messages of a link arrive in the order in which they were sent.
  void send(std::pair<std::size_t, std::size_t> link, std::function<void()> arrives) {
    double& last_s = last_arrival_s_[link];
    last_s = std::max(last_s, now_s_ + scenario_.delay_s(messages_++));
    events_.emplace(last_s, std::move(arrives));
  }

  [[nodiscard]] Moment moment(std::size_t worker, std::size_t partition) const {
    const Copy& copy = workers_[worker].copies[partition];
    return {.own = workers_[worker].clock,
            .fetched = copy.fetched,
            .wanted = copy.wanted,
            .sent = copy.sent,
            .significance = copy.significance};
  }

  void begin(std::size_t index) {
    Worker& worker = workers_[index];
    if (worker.computes || worker.clock == scenario_.steps) return;
    for (std::size_t partition = 0; partition < shards_.size(); ++partition)
      if (must_fetch(rule_, moment(index, partition))) return;
    worker.computes = true;
    Reading reading{index, worker.clock, now_s_ - worker.idle_since_s, {}};
    for (const Copy& copy : worker.copies) reading.seen.push_back(copy.seen);
    history_.readings.push_back(std::move(reading));
    after(scenario_.compute_s(index, worker.clock), [this, index] { end(index); });
  }

  void end(std::size_t index) {
    Worker& worker = workers_[index];
    const Clock step = worker.clock++;
    worker.computes = false;
    worker.idle_since_s = now_s_;
    history_.ended_s.resize(workers_.size());
    history_.ended_s[index] = now_s_;
    for (std::size_t partition = 0; partition < shards_.size(); ++partition) {
      Copy& copy = worker.copies[partition];
      copy.seen[index] = worker.clock;  // it reads its own writes
      if (scenario_.significance) copy.significance += scenario_.significance(index, step, partition);
      if (travels(rule_, moment(index, partition)) || worker.clock == scenario_.steps) push(index, partition);
    }
    begin(index);
  }

  void push(std::size_t index, std::size_t partition) {
    const Clock clock = workers_[index].clock;
    Copy& copy = workers_[index].copies[partition];
    copy.sent = clock;
    copy.significance = 0;
    ++history_.sent;
    send({index, partition}, [this, index, partition, clock] {
      shards_[partition].applied[index] = clock;
      shards_[partition].asks[index] = clock;
      answer(partition);
    });
  }

  void answer(std::size_t partition) {
    Shard& shard = shards_[partition];
    Clock wanted = 0;
    for (auto ask = shard.asks.begin(); ask != shard.asks.end();) {
      const auto [index, clock] = *ask;
      if (may_go_on(rule_, {.own = clock, .least = shard.least()})) {
        reply(index, partition);
        ask = shard.asks.erase(ask);
      } else {
        wanted = std::max(wanted, clock - *rule_.staleness);
        ++ask;
      }
    }
    for (std::size_t index = 0; index < workers_.size(); ++index)
      if (shard.applied[index] < wanted) want(index, partition, wanted);
  }

  void reply(std::size_t index, std::size_t partition) {
    send({workers_.size() + index, partition}, [this, index, partition, seen = shards_[partition].applied] {
      Copy& copy = workers_[index].copies[partition];
      copy.fetched = *std::ranges::min_element(seen);
      copy.seen = seen;
      copy.seen[index] = workers_[index].clock;
      begin(index);
    });
  }

  void want(std::size_t index, std::size_t partition, Clock wanted) {
    send({workers_.size() + index, partition}, [this, index, partition, wanted] {
      Copy& copy = workers_[index].copies[partition];
      copy.wanted = std::max(copy.wanted, wanted);
    });
  }

  const Rule& rule_;
  const Scenario& scenario_;
  std::vector<Worker> workers_;
  std::vector<Shard> shards_;
  std::multimap<double, std::function<void()>> events_;
  std::map<std::pair<std::size_t, std::size_t>, double> last_arrival_s_;
  double now_s_ = 0;
  std::uint64_t messages_ = 0;
  History history_;
};

}  // namespace

double History::seconds() const { return *std::ranges::max_element(ended_s); }

double History::waited_s() const {
  return std::accumulate(readings.begin(), readings.end(), 0.0,
                         [](double sum, const Reading& reading) { return sum + reading.waited_s; });
}

double History::traffic(const Scenario& scenario) const {
  return static_cast<double>(sent) / static_cast<double>(scenario.workers * scenario.partitions) /
         static_cast<double>(scenario.steps);
}

Clock History::stalest() const {
  Clock most = 0;
  for (const Reading& reading : readings)
    for (const auto& seen : reading.seen) most = std::max(most, reading.step - *std::ranges::min_element(seen));
  return most;
}

History history_of(const Rule& rule, const Scenario& scenario) { return Run(rule, scenario).play(); }

}  // namespace syncopate::server
