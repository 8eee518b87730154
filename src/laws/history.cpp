// Histories: workers that compute and wait, and messages that take drawn times between production's tables.
#include "laws/history.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/random.hpp"
#include "server/table/server_tables.hpp"
#include "server/table/worker_tables.hpp"
#include "simulate/server/ports.hpp"

namespace syncopate::laws {

namespace {

using server::Clock;
using server::ServerTables;
using server::WorkerTables;

struct Worker {
  std::vector<std::vector<float>> weights{};
  std::unique_ptr<WorkerTables> tables{};
  bool computes = false;
};

class Play final {
 public:
  explicit Play(const HistoryOptions& options)
      : options_(options),
        setup_(options.setup),
        random_{options.seed},
        workers_(setup_.workers),
        arrivals_s_(2 * setup_.workers * setup_.servers) {
    history_.clocks.resize(setup_.workers);
    history_.finished.resize(setup_.workers);
    history_.took_s.resize(setup_.workers);
    for (std::size_t server = 0; server < setup_.servers; ++server)
      servers_.push_back(std::make_unique<ServerTables>(
          server, std::numeric_limits<std::size_t>::max(),
          [this, server](server::Outgoing outgoing) { reply(server, std::move(outgoing)); }, nullptr, setup_.catalogue,
          std::make_unique<simulate::server::EventClock>(events_)));
    for (std::size_t index = 0; index < workers_.size(); ++index) {
      std::vector<Buffer> buffers;
      for (const server::TableShape& table : setup_.tables) workers_[index].weights.emplace_back(table.elements);
      for (auto& table : workers_[index].weights) buffers.emplace_back(std::span(table));
      workers_[index].tables =
          std::make_unique<WorkerTables>(setup_, index, std::move(buffers),
                                         [this, index](server::Request request) { send(index, std::move(request)); });
    }
  }

  History run() && {
    set_up();
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) go_on(worker);
    events_.run();
    for (std::size_t worker = 0; worker < workers_.size(); ++worker)
      history_.clocks[worker] = workers_[worker].tables->clock();
    return std::move(history_);
  }

 private:
  void set_up() {
    const server::Payload setup = server::payload_of(setup_.bytes());
    for (std::size_t worker = 0; worker < workers_.size(); ++worker)
      for (const auto& server : servers_) server->receive(worker, server::Hello{.is_new = true, .setup = setup});
    workers_.front().tables->offer();
    for (Worker& worker : workers_) worker.tables->begin({});
    events_.run();
    is_set_up_ = true;
  }

  void go_on(std::size_t index) {
    Worker& worker = workers_[index];
    if (worker.computes || history_.finished[index]) return;
    if (worker.tables->clock() == options_.steps) return finish(index);
    worker.tables->demand();
    for (std::size_t table = 0; table < worker.weights.size(); ++table)
      if (!worker.tables->may_read(table)) return;
    for (std::size_t table = 0; table < worker.weights.size(); ++table) worker.tables->read(table);
    Seen& seen = history_.seen.emplace_back(seen_in(worker.weights, workers_.size()));
    seen.worker = index;
    seen.step = worker.tables->clock();
    seen.time_s = events_.now_s();
    worker.computes = true;
    events_.at(events_.now_s() + options_.compute_s(index, seen.step), [this, index] { end_step(index); });
  }

  void end_step(std::size_t index) {
    Worker& worker = workers_[index];
    const UpdateStep at{.rate = 1, .step = static_cast<std::uint64_t>(worker.tables->clock()) + 1};
    for (std::size_t table = worker.weights.size(); table-- > 0;) {
      std::vector<float> gradient(worker.weights[table].size());
      for (std::size_t i = index; i < gradient.size(); i += workers_.size())
        gradient[i] = -static_cast<float>(workers_.size());
      worker.tables->update(table, gradient, at);
    }
    worker.tables->end_step(at);
    worker.computes = false;
    history_.took_s[index] = events_.now_s();
    go_on(index);
  }

  void finish(std::size_t index) {
    if (!workers_[index].tables->finish()) return;
    history_.finished[index] = true;
    for (std::size_t server = 0; server < servers_.size(); ++server)
      send(index, {.server = server, .message = server::Finish{}});
  }

  void send(std::size_t worker, server::Request request) {
    history_.pushes += std::holds_alternative<server::Push>(request.message) ? 1 : 0;
    const std::size_t server = request.server;
    travel(worker * servers_.size() + server, [this, worker, server, message = std::move(request.message)] {
      servers_[server]->receive(worker, message);
    });
  }

  void reply(std::size_t server, server::Outgoing outgoing) {
    const std::size_t worker = outgoing.worker;
    if (std::holds_alternative<server::Welcome>(outgoing.message)) return;
    travel((workers_.size() + worker) * servers_.size() + server,
           [this, worker, server, message = std::move(outgoing.message)] {
             workers_[worker].tables->receive(server, message);
             if (is_set_up_) go_on(worker);
           });
  }

  void travel(std::size_t stream, std::function<void()> arrives) {
    const double delay_s = is_set_up_ ? options_.most_delay_s * random_.uniform(travelled_++) : 0;
    arrivals_s_[stream] = std::max(arrivals_s_[stream], events_.now_s() + delay_s);
    events_.at(arrivals_s_[stream], std::move(arrives));
  }

  const HistoryOptions& options_;
  const server::Setup& setup_;
  const base::CounterRandom random_;
  simulate::server::Events events_;
  std::vector<std::unique_ptr<ServerTables>> servers_;
  std::vector<Worker> workers_;
  std::vector<double> arrivals_s_;  ///< by stream: of its last message
  std::uint64_t travelled_ = 0;
  bool is_set_up_ = false;
  History history_;
};

}  // namespace

History history_of(const HistoryOptions& options) { return Play(options).run(); }

Seen seen_in(std::span<const std::vector<float>> tables, std::size_t workers) {
  Seen seen{.least = std::vector<Clock>(workers, std::numeric_limits<Clock>::max()),
            .most = std::vector<Clock>(workers)};
  for (const auto& table : tables)
    for (std::size_t i = 0; i < table.size(); ++i) {
      Clock &least = seen.least[i % workers], &most = seen.most[i % workers];
      const Clock steps = std::lround(table[i]);
      least = std::min(least, steps);
      most = std::max(most, steps);
    }
  return seen;
}

HistoryOptions drawn_history(const std::string& consistency, const Catalogue& catalogue, std::uint64_t seed,
                             Clock steps, const Limits& limits) {
  const base::CounterRandom random{seed};
  const auto drawn = [&](std::size_t most, std::uint64_t counter) {
    return 1 + random.below(static_cast<std::uint32_t>(most), counter);
  };
  const std::size_t workers = drawn(limits.workers, 0), servers = drawn(limits.servers, 1);
  return {.setup = {.tables = {{"front", workers * servers}, {"back", 2 * workers * servers}},
                    .workers = workers,
                    .servers = servers,
                    .consistency = consistency,
                    .optimizer = "sgd",
                    .hyperparameters = {{"weight_decay", 0}},
                    .catalogue = catalogue},
          .steps = steps,
          .seed = seed,
          .compute_s =
              [=](std::size_t worker, Clock step) {
                const base::CounterRandom own{seed, worker};
                return (0.2 + own.uniform(0)) * (own.uniform(static_cast<std::uint64_t>(step) + 1) < 0.1 ? 8 : 1);
              },
          .most_delay_s = 2 * random.uniform(2)};
}

}  // namespace syncopate::laws
