// The random draws of a job, and its faults.
#include "virtual/server/job.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::server {

namespace {

Setup setup_of(World& world) {
  static constexpr const char* kModels[] = {"bsp", "bsp",    "ssp:1",     "ssp:3", "adaptive:0.1,5",
                                            "tap", "essp:2", "gaia:0.1,3"};
  static constexpr const char* kPlacements[] = {"uniform", "lpt", "round_robin"};
  static constexpr const char* kCodecs[] = {"none", "none", "topk:0.2"};
  Setup setup{.workers = world.draw(1, 8),
              .servers = world.draw(1, 4),
              .placement = kPlacements[world.draw(0, 2)],
              .consistency = kModels[world.draw(0, std::size(kModels) - 1)],
              .coding = {.codec = kCodecs[world.draw(0, 2)], .dense_below = 20},
              .answers = kCodecs[world.draw(0, 2)],
              .optimizer = "sgd",
              .hyperparameters = {{"weight_decay", 0}}};
  setup.flow = kFlows[world.draw(0, 2)];
  const std::uint64_t tables = world.draw(1, 3);
  for (std::uint64_t i = 0; i < tables; ++i)
    setup.tables.push_back({fmt::format("t{}", i), world.draw(8, i == 0 ? 400 : 60), i == 2});
  return setup;
}

constexpr virtual_world::Weather kWeather{.fastest = 10us, .slowest = 10ms, .buffer = std::size_t{256} << 10};

}  // namespace

Job::Job(std::uint64_t seed, bool prints)
    : world(seed), network(world, kWeather), setup(setup_of(world)), rules(setup) {
  world.prints = prints;
  replicas = setup.servers > 1 && world.happens(60) ? 1 : 0;
  steps = static_cast<Clock>(world.draw(4, 16));
  if (replicas == 0 && world.happens(50)) snapshot_every = static_cast<Clock>(world.draw(1, 4));
  make_processes();
  scenario = fmt::format("{} workers, {} servers, {} replicas, {}, {}, {}, codec {}, answers {}, {} tables, {} steps",
                         setup.workers, setup.servers, replicas, setup.consistency, setup.flow, setup.placement,
                         setup.coding.codec, setup.answers, setup.tables.size(), steps);
  const bool is_late = setup.workers > 1 && world.happens(35);
  if (is_late) scenario += ", the last worker is late";
  for (auto& worker : workers) {
    const bool waits = is_late && worker == workers.back();
    may_give_up = may_give_up || waits;
    world.in(waits ? world.draw(100ms, Duration(3s)) : world.draw(0ns, Duration(100ms)),
             [&worker] { worker->start(); });
  }
  draw_faults();
}

Job::Job(const JobOptions& stated)
    : options(stated),
      world(stated.seed),
      network(world, kWeather),
      setup(stated.setup),
      rules(setup),
      replicas(stated.kill_every_s > 0 ? 1 : 0),
      steps(stated.steps),
      may_give_up(!stated.accidents.empty()) {
  make_processes();
  for (auto& worker : workers) world.in(0ns, [&worker] { worker->start(); });
  for (const auto& [worker, accident] : options.accidents) make_accident(worker, accident);
  repeat(options.break_every_s, &Job::break_stream);
  repeat(options.kill_every_s, &Job::kill_server);
  if (replicas > 0) repeat(options.break_every_s, &Job::break_replication);
}

void Job::make_processes() {
  servers.resize(setup.servers);
  for (std::size_t i = 0; i < setup.servers; ++i) servers[i] = std::make_unique<ServerProcess>(*this, i);
  for (std::size_t i = 0; i < setup.workers; ++i)
    workers.push_back(std::make_unique<WorkerProcess>(*this, i, setup.servers + i, steps));
}

void Job::make_accident(std::size_t worker, const Accident& accident) {
  world.in(base::from_seconds(accident.at_s), [this, worker, accident] {
    if (!workers[worker]->has_begun) return make_accident(worker, accident);
    if (accident.for_s > 0)
      workers[worker]->machine.stop(world.now() + base::from_seconds(accident.for_s));
    else
      workers[worker]->die();
    if (accident.replaced_s > 0) world.in(base::from_seconds(accident.replaced_s), [this, worker] { replace(worker); });
  });
}

void Job::replace(std::size_t worker) {
  world.note("worker is replaced", worker);
  replaced.push_back(std::move(workers[worker]));
  const std::size_t host = setup.servers + setup.workers + replaced.size();
  workers[worker] = std::make_unique<WorkerProcess>(*this, worker, host, steps);
  workers[worker]->start();
}

std::vector<const WorkerProcess*> Job::processes() const {
  std::vector<const WorkerProcess*> all;
  for (const auto* processes : {&workers, &replaced})
    for (const auto& process : *processes) all.push_back(process.get());
  return all;
}

void Job::repeat(double every_s, void (Job::*fault)()) {
  if (every_s <= 0) return;
  world.in(world.draw(0ns, base::from_seconds(2 * every_s)), [this, every_s, fault] {
    if (is_over()) return;
    (this->*fault)();
    repeat(every_s, fault);
  });
}

bool Job::is_over() const {
  return std::ranges::all_of(workers, [](const auto& worker) { return worker->has_finished || worker->is_dead(); });
}

void Job::run(Duration bound) {
  const Time end = world.now() + bound;
  while (!is_over() && world.go_on(end)) {
  }
  const Time rest = world.now() + 3s;  // for messages in flight, and replacements in progress
  while (world.go_on(rest)) {
  }
}

void Job::compute_gradient(std::size_t worker, std::size_t table, std::span<float> gradient) const {
  if (options.gradient) return options.gradient(worker, clock(worker), table, gradient);
  for (std::size_t i = worker; i < gradient.size(); i += setup.workers)
    gradient[i] = -static_cast<float>(setup.workers);
}

Duration Job::compute_time(std::size_t worker) {
  if (options.compute_s) return base::from_seconds(options.compute_s(worker, clock(worker)));
  return world.draw(1ms, Duration(60ms));
}

void Job::break_replication() {
  if (auto& server = servers[world.draw(0, servers.size() - 1)]) server->cut_replication();
}

void Job::break_stream() {
  WorkerProcess& worker = *workers[world.draw(0, workers.size() - 1)];
  const std::size_t server = world.draw(0, servers.size() - 1);
  if (!worker.is_dead() && !worker.has_finished && worker.has_begun) worker.cut(server);
}

/// Kills a server, which another process replaces. Only if nothing is lost: all servers are up, and all replicas
/// complete.
void Job::kill_server() {
  const bool are_there = std::ranges::all_of(servers, [](const auto& server) {
    return server && !server->tables().is_empty() && server->shell.status().keeps_replica;
  });
  if (!are_there) return;
  const std::size_t index = world.draw(0, servers.size() - 1);
  world.note("server is killed", index);
  ++kills;
  servers[index].reset();
  world.in(world.draw(10ms, Duration(700ms)), [this, index] {
    world.note("server is replaced", index);
    servers[index] = std::make_unique<ServerProcess>(*this, index);
  });
}

/// All processes of the job end, and others begin from the newest step of which all servers have a snapshot.
void Job::restart_all() {
  if (is_over() || !std::ranges::all_of(workers, &WorkerProcess::has_begun)) return;
  world.note("all processes end", 0);
  for (auto& server : servers) server.reset();
  for (auto& worker : workers) {
    worker->die();
    ended.push_back(std::move(worker));
    const std::size_t host = setup.servers + setup.workers + replaced.size() + ended.size();
    worker = std::make_unique<WorkerProcess>(*this, ended.back()->index(), host, steps);
  }
  is_restarted = true;
  begun_at = newest_in_common();
  snapshots.erase(snapshots.upper_bound(begun_at), snapshots.end());
  seen.clear();
  world.in(world.draw(10ms, Duration(700ms)), [this] { begin_again(); });
}

void Job::begin_again() {
  world.note("the job begins again", static_cast<std::uint64_t>(begun_at));
  for (std::size_t i = 0; i < servers.size(); ++i) servers[i] = std::make_unique<ServerProcess>(*this, i);
  for (auto& worker : workers) worker->start();
}

void Job::keep_image(std::size_t server, ServerTables::Image image) {
  snapshots[image.step][server][image.piece] = std::move(image.parts.front());
}

Clock Job::newest_in_common() const {
  std::map<std::size_t, std::size_t> pieces;
  for (const Block& block : blocks_of(setup)) ++pieces[block.server];
  for (auto at = snapshots.rbegin(); at != snapshots.rend(); ++at)
    if (std::ranges::all_of(pieces, [&](const auto& of) {
          const auto found = at->second.find(of.first);
          return found != at->second.end() && found->second.size() == of.second;
        }))
      return at->first;
  return 0;
}

void Job::draw_faults() {
  if (snapshot_every > 0 && world.happens(60)) {
    scenario += fmt::format(", all restart from snapshots of every {} steps", snapshot_every);
    world.in(world.draw(50ms, Duration(900ms)), [this] { restart_all(); });
  }
  const auto sometime = [this] { return world.draw(50ms, Duration(900ms)); };
  for (std::uint64_t fault = world.draw(0, 8); fault > 0; --fault) {
    switch (world.draw(0, 6)) {
      case 0:
      case 1:
        world.in(sometime(), [this] { break_stream(); });
        break;
      case 2:
        if (replicas == 0) break;
        scenario += ", a server is killed";
        world.in(sometime(), [this] { kill_server(); });
        break;
      case 3:
        if (replicas == 0) break;
        scenario += ", replication breaks";
        world.in(sometime(), [this] { break_replication(); });
        break;
      case 4: {
        const std::size_t who = world.draw(0, workers.size() - 1);
        const Duration stop = world.draw(50ms, Duration(2500ms));
        may_give_up = may_give_up || stop > kSilence;
        scenario += fmt::format(", worker {} stops for {} ms", who, stop / 1ms);
        world.in(sometime(), [this, who, stop] { workers[who]->machine.stop(world.now() + stop); });
        break;
      }
      case 5: {
        const std::size_t who = world.draw(0, servers.size() - 1);
        const Duration stop = world.draw(50ms, kSilence - 100ms);
        scenario += fmt::format(", server {} stops for {} ms", who, stop / 1ms);
        world.in(sometime(), [this, who, stop] {
          if (servers[who]) servers[who]->machine.stop(world.now() + stop);
        });
        break;
      }
      default: {
        if (workers.size() == 1 || may_give_up) break;
        const std::size_t who = world.draw(1, workers.size() - 1);
        may_give_up = true;
        scenario += fmt::format(", worker {} is killed", who);
        world.in(sometime(), [this, who] {
          if (workers[who]->has_begun && !workers[who]->has_finished) workers[who]->die();
        });
      }
    }
  }
}

}  // namespace syncopate::server
