// History: the event loop of workers and servers in virtual time.
#include "server/history.hpp"

#include <algorithm>
#include <numeric>

namespace syncopate::server {

namespace {

/// One worker's copy of one shard.
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

/// A server's state of one shard.
struct Kept {
  std::vector<Clock> applied;
  std::map<std::size_t, Clock> asks;  ///< worker -> its clock; unanswered
  [[nodiscard]] Clock least() const { return *std::ranges::min_element(applied); }
};

class Run final {
 public:
  Run(const Rule& rule, const Scenario& scenario)
      : rule_(rule), scenario_(scenario), workers_(scenario.workers), kept_(scenario.shards) {
    for (Worker& worker : workers_)
      worker.copies.assign(scenario.shards, {.seen = std::vector<Clock>(scenario.workers)});
    for (Kept& kept : kept_) kept.applied.assign(scenario.workers, 0);
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
    for (const Kept& kept : kept_) history_.applied.push_back(kept.applied);
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

  [[nodiscard]] Moment moment(std::size_t worker, std::size_t shard) const {
    const Copy& copy = workers_[worker].copies[shard];
    return {.own = workers_[worker].clock,
            .fetched = copy.fetched,
            .wanted = copy.wanted,
            .sent = copy.sent,
            .significance = copy.significance};
  }

  void begin(std::size_t index) {
    Worker& worker = workers_[index];
    if (worker.computes || worker.clock == scenario_.steps) return;
    for (std::size_t shard = 0; shard < kept_.size(); ++shard)
      if (must_fetch(rule_, moment(index, shard))) return;
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
    for (std::size_t shard = 0; shard < kept_.size(); ++shard) {
      Copy& copy = worker.copies[shard];
      copy.seen[index] = worker.clock;  // it reads its own writes
      if (scenario_.significance) copy.significance += scenario_.significance(index, step, shard);
      if (travels(rule_, moment(index, shard)) || worker.clock == scenario_.steps) push(index, shard);
    }
    begin(index);
  }

  void push(std::size_t index, std::size_t shard) {
    const Clock clock = workers_[index].clock;
    Copy& copy = workers_[index].copies[shard];
    copy.sent = clock;
    copy.significance = 0;
    ++history_.sent;
    send({index, shard}, [this, index, shard, clock] {
      kept_[shard].applied[index] = clock;
      kept_[shard].asks[index] = clock;
      answer(shard);
    });
  }

  void answer(std::size_t shard) {
    Kept& kept = kept_[shard];
    Clock wanted = 0;
    for (auto ask = kept.asks.begin(); ask != kept.asks.end();) {
      const auto [index, clock] = *ask;
      if (may_go_on(rule_, {.own = clock, .least = kept.least()})) {
        reply(index, shard);
        ask = kept.asks.erase(ask);
      } else {
        wanted = std::max(wanted, clock - *rule_.staleness);
        ++ask;
      }
    }
    for (std::size_t index = 0; index < workers_.size(); ++index)
      if (kept.applied[index] < wanted) want(index, shard, wanted);
  }

  void reply(std::size_t index, std::size_t shard) {
    send({workers_.size() + index, shard}, [this, index, shard, seen = kept_[shard].applied] {
      Copy& copy = workers_[index].copies[shard];
      copy.fetched = *std::ranges::min_element(seen);
      copy.seen = seen;
      copy.seen[index] = workers_[index].clock;
      begin(index);
    });
  }

  void want(std::size_t index, std::size_t shard, Clock wanted) {
    send({workers_.size() + index, shard}, [this, index, shard, wanted] {
      Copy& copy = workers_[index].copies[shard];
      copy.wanted = std::max(copy.wanted, wanted);
    });
  }

  const Rule& rule_;
  const Scenario& scenario_;
  std::vector<Worker> workers_;
  std::vector<Kept> kept_;
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
  return static_cast<double>(sent) / static_cast<double>(scenario.workers * scenario.shards) /
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
