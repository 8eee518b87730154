// Cluster: the event loop around the cores.
#include "server/cluster.hpp"

#include <algorithm>

namespace syncopate::server {

Cluster::Cluster(const ClusterOptions& options) : options_(options), random_(options.seed) {
  const Setup& setup = options_.setup;
  replicas_.resize(setup.servers);
  for (std::size_t server = 0; server < setup.servers; ++server) {
    servers_.push_back(made(server));
    replicas_[server].tables = std::make_unique<ServerTables>(server, kMemory, [](auto&&...) {});
  }
  for (std::size_t worker = 0; worker < setup.workers; ++worker) {
    auto made = std::make_unique<Worker>();
    std::vector<Buffer> buffers;
    for (const TableShape& table : setup.tables) made->weights.emplace_back(table.elements);
    for (auto& weights : made->weights) buffers.emplace_back(std::span(weights));
    made->tables = std::make_unique<WorkerTables>(
        setup, worker, buffers, [this, worker](Request request) { to_server(worker, std::move(request)); });
    workers_.push_back(std::move(made));
    for (std::size_t server = 0; server < setup.servers; ++server) links_[{worker, server}];
  }
}

Cluster::~Cluster() = default;

bool Cluster::has_finished(std::size_t worker) const { return workers_[worker]->has_finished; }
const std::vector<std::vector<float>>& Cluster::weights(std::size_t worker) const { return workers_[worker]->weights; }
Clock Cluster::clock(std::size_t worker) const { return workers_[worker]->tables->clock(); }

void Cluster::after(double seconds, std::function<void()> happens) {
  events_.emplace(now_s_ + seconds, std::move(happens));
}

void Cluster::travel(Link& link, int direction, std::function<void()> arrives) {
  if (!link.is_up) return;
  double& last_s = link.last_s[direction];
  last_s = std::max(last_s, now_s_ + random(0.02));
  events_.emplace(last_s, [&link, life = link.life, arrives = std::move(arrives)] {
    if (link.life == life) arrives();
  });
}

/// Rebuilds a message from its bytes, as on the wire.
Message copied(const Message& message, bool from_worker) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  const auto head = head_of(message);
  bytes->assign(head.begin(), head.end());
  bytes->insert(bytes->end(), message.body.bytes.begin(), message.body.bytes.end());
  const base::ConstBytes all(*bytes);
  return message_of({std::move(bytes), all}, from_worker);
}

void Cluster::to_server(std::size_t worker, Request request) {
  if (workers_[worker]->is_dead) return;
  if (request.message.says != Says::setup && !links_[{worker, request.server}].is_welcome) return;
  pushes_ += request.message.says == Says::push ? 1 : 0;
  travel(links_[{worker, request.server}], 0,
         [this, worker, server = request.server, message = copied(request.message, true)] {
           servers_[server]->receive(worker, message);
         });
}

void Cluster::to_worker(std::size_t server, Outgoing outgoing) {
  const std::size_t worker = outgoing.worker;
  travel(links_[{worker, server}], 1, [this, worker, server, message = copied(outgoing.message, false)] {
    if (!workers_[worker]->is_dead) heard(worker, server, message);
  });
}

void Cluster::heard(std::size_t index, std::size_t server, Message message) {
  Worker& worker = *workers_[index];
  if (message.says == Says::welcome) {
    links_[{index, server}].is_welcome = true;
    worker.others = std::max(worker.others, message.least);
    if (++worker.welcomes == servers_.size()) {
      if (index == 0) worker.tables->offer();
      worker.tables->begin(0);
      worker.has_begun = true;
    } else if (worker.has_begun) {
      worker.tables->repeat(server);
    }
  } else {
    worker.tables->receive(server, std::move(message));
  }
  if (worker.has_begun) go_on(index);
}

void Cluster::go_on(std::size_t index) {
  Worker& worker = *workers_[index];
  if (worker.computes || worker.has_finished || worker.is_dead) return;
  WorkerTables& tables = *worker.tables;
  tables.catch_up(worker.others);
  if (tables.clock() >= options_.steps) {
    worker.has_finished = tables.finish();
  } else {
    tables.demand();
    for (std::size_t table = 0; table < worker.weights.size(); ++table)
      if (!tables.may_read(table)) return;
    worker.computes = true;
  }
  if (!worker.computes && !worker.has_finished) return;
  for (std::size_t table = 0; table < worker.weights.size(); ++table) tables.read(table);
  if (worker.has_finished) {
    for (std::size_t server = 0; server < servers_.size(); ++server)
      to_server(index, {server, 0, {.says = Says::finish}});
    return;
  }
  options_.reads(index, tables.clock(), worker.weights);
  after(options_.compute_s(index, tables.clock()), [this, index] { compute(index); });
}

void Cluster::compute(std::size_t index) {
  Worker& worker = *workers_[index];
  if (worker.is_dead) return;
  WorkerTables& tables = *worker.tables;
  const UpdateStep at{options_.rate, static_cast<std::uint64_t>(tables.clock()) + 1};
  for (std::size_t table = worker.weights.size(); table-- > 0;) {
    std::vector<float> gradient(worker.weights[table].size());
    options_.gradient(index, tables.clock(), table, gradient);
    tables.update(table, gradient, at);
  }
  tables.end_step(at);
  worker.computes = false;
  go_on(index);
}

bool Cluster::goes_on() const {
  return std::ranges::any_of(workers_, [](const auto& w) { return !w->has_finished && !w->is_dead; });
}

bool Cluster::has_begun() const {
  return std::ranges::all_of(workers_, [](const auto& w) { return w->has_begun; });
}

void Cluster::break_link() {
  if (!goes_on()) return;
  const std::size_t worker = random_() % workers_.size(), server = random_() % servers_.size();
  Link& link = links_[{worker, server}];
  if (link.is_up && !workers_[worker]->is_dead && workers_[worker]->has_begun) {
    ++breaks_;
    ++link.life;
    link.is_up = link.is_welcome = false;
    after(random(0.05), [this, worker, server] { reconnect(worker, server); });
  }
  after(random(2 * options_.break_every_s), [this] { break_link(); });
}

void Cluster::reconnect(std::size_t worker, std::size_t server) {
  if (workers_[worker]->is_dead || !servers_[server]) return;
  links_[{worker, server}].is_up = true;
  const std::string setup = options_.setup.bytes();
  const bool is_fresh = !workers_[worker]->has_begun;
  to_server(
      worker,
      {server, 0, {.says = Says::setup, .last = is_fresh ? 1 : 0, .body = {nullptr, std::as_bytes(std::span(setup))}}});
}

void Cluster::die(std::size_t worker) {
  workers_[worker]->is_dead = true;
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    links_[{worker, server}].is_up = false;
    ++links_[{worker, server}].life;
  }
  after(1, [this, worker] {
    workers_[worker]->is_gone = true;
    for (const auto& server : servers_)
      if (server) server->leave(worker);
  });
}

void Cluster::run() {
  for (std::size_t worker = 0; worker < workers_.size(); ++worker)
    for (std::size_t server = 0; server < servers_.size(); ++server) reconnect(worker, server);
  for (std::size_t worker = 0; worker < options_.dies_s.size(); ++worker)
    if (options_.dies_s[worker] > 0) after(options_.dies_s[worker], [this, worker] { die(worker); });
  if (options_.break_every_s > 0) after(random(2 * options_.break_every_s), [this] { break_link(); });
  if (options_.kill_every_s > 0) after(random(2 * options_.kill_every_s), [this] { kill_server(); });
  if (options_.kill_every_s > 0 && options_.break_every_s > 0)
    after(random(2 * options_.break_every_s), [this] { break_replication(); });
  while (!events_.empty()) {
    const auto first = events_.begin();
    now_s_ = first->first;
    const auto happens = std::move(first->second);
    events_.erase(first);
    happens();
  }
}

}  // namespace syncopate::server
