// The worker of include/syncopate/server.hpp: its tables, a stream to each server, and waiting.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/fork.hpp"
#include "base/require.hpp"
#include "server/job/settings.hpp"
#include "server/process/access.hpp"
#include "server/process/turn_thread.hpp"
#include "server/process/worker_shell.hpp"
#include "server/streams/streams.hpp"
#include "server/table/worker_tables.hpp"
#include "syncopate/server.hpp"

namespace syncopate {

namespace streams = server::streams;
using server::JobRules, server::RowRules, server::Setup, server::Staleness, server::TurnThread, server::WorkerRows,
    server::WorkerShell, server::WorkerTables;

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};  // calls of WorkerOptions::while_waiting

Setup setup_of(const WorkerOptions& options) {
  return {.tables = {},
          .workers = options.workers,
          .servers = options.servers.size(),
          .placement = options.placement,
          .consistency = options.consistency,
          .storage = options.storage,
          .coding = options.coding,
          .answers = options.answers,
          .flow = options.flow,
          .optimizer = options.optimizer,
          .hyperparameters = options.hyperparameters,
          .catalogue = options.catalogue};
}

void require_allowed(const WorkerOptions& options) {
  base::require(!options.servers.empty(), "no server; allowed: at least 1");
  base::require(options.workers >= 1, "a job of 0 workers; allowed: 1 to {}", server::kMostWorkers);
  base::require(options.worker < options.workers, "worker {} of {}; allowed: 0 to {}", options.worker, options.workers,
                options.workers - 1);
  base::require(options.timeout.count() > 0, "a timeout of {} ms; allowed: more than 0", options.timeout.count());
  static_cast<void>(JobRules(setup_of(options)));
  for (const auto& setting : coding_settings())  // also of what the codec ignores: servers read it
    syncopate::require_allowed(setting.name, setting.text(options.coding), setting.allowed, setting.values);
}

WorkerOptions with_log(WorkerOptions options) {
  options.log = with_environment_level(std::move(options.log));
  return options;
}

WorkerShell::Options shell_options(const WorkerOptions& options) {
  return {.worker = options.worker,
          .servers = options.servers,
          .timeout = options.timeout,
          .process = server::drawn_process(),
          .log = options.log};
}

}  // namespace

std::span<const Setting<WorkerOptions>> worker_settings() { return server::kJobSettings<WorkerOptions>; }

class TableWorker::Impl {
 public:
  explicit Impl(const WorkerOptions& options)
      : options_(with_log(options)),
        storages_(server::storages_of(options.storage, options.catalogue)),
        setup_(setup_of(options)),
        shell_(
            shell_options(options_),
            [this](std::size_t server, streams::DialEvents events) { dial(server, std::move(events)); },
            [this] { turns_.ask(); }, std::make_shared<base::SteadyClock>()),
        streams_(server::end_options(options.access, {.role = streams::Identity::Role::worker, .index = options.worker},
                                     options_.log)) {
    turns_.start([this] {
      shell_.turn();
      streams_.wake();  // a caller looks for a failure
      return base::kNever;
    });
    try {
      wait_for(base::kNever, [this] { return shell_.is_connected(); });
      shell_.require_whole();
    } catch (...) {
      end();
      throw;
    }
  }

  ~Impl() { end(); }

  std::size_t create_table(std::string name, Buffer weights, bool spared, std::size_t rows) {
    base::require(!shell_.has_tables(), "table '{}' comes after start; allowed: before it", name);
    server::require_type(storages_, "weights", name, weights.dtype);
    base::require(rows == 0 || weights.count % rows == 0,
                  "table '{}' has {} rows; allowed: a divisor of its {} elements, or 0", name, rows, weights.count);
    setup_.tables.push_back({std::move(name), weights.count, spared, rows});
    weights_.push_back(weights);
    return weights_.size() - 1;
  }

  std::size_t create_rows(const RowOptions& options) {
    base::require(!shell_.has_tables(), "rows of table '{}' are created after start; allowed: before it", options.name);
    static_cast<void>(RowRules(options, setup_.rows.size(), options_.catalogue));
    setup_.rows.push_back(options);
    return setup_.rows.size() - 1;
  }

  void start(KeptTables earlier) {
    base::require(!shell_.has_tables(), "start was called before; allowed: once");
    setup_.first_step = earlier.step;
    shell_.introduce(setup_, weights_, std::move(earlier));
    const bool is_admitted = wait_for(clock_.now() + options_.timeout, [this] { return shell_.is_admitted(); });
    shell_.require_whole();
    if (!is_admitted)
      throw Timeout(fmt::format("not all servers have accepted the job within {} ms", options_.timeout.count()));
    shell_.begin();
    sync_first();
  }

  void update(std::size_t table, const Buffer& gradient, double rate) {
    require_usable();
    base::require(std::isfinite(rate) && rate >= 0, "a learning rate of {}; allowed: 0 or more", rate);
    tables().update(table, gradient, step(rate));
  }

  void clock(double rate) {
    require_usable();
    tables().end_step(step(rate));
    tables().catch_up(shell_.newest());
  }

  bool is_ready(std::size_t table) {
    require_usable();
    return tables().may_read(table);
  }

  void sync(std::size_t table) {
    require_usable();
    base::require(table < weights_.size(), "table {} of {}", table, weights_.size());
    if (!tables().may_read(table))
      wait(
          [&] {
            tables().demand();
            return tables().may_read(table);
          },
          setup_.tables[table].name);
    tables().read(table);
  }

  void pull_rows(std::size_t table, std::span<const std::uint64_t> ids, std::span<float> rows) {
    require_usable();
    WorkerRows& own = tables().rows();
    own.pull(table, ids, rows);
    try {
      wait([&] { return own.has_pulled(); }, setup_.rows[table].name);
    } catch (...) {
      own.abandon();  // late arrivals must not be written to memory that is freed
      throw;
    }
  }

  void push_rows(std::size_t table, std::span<const std::uint64_t> ids, std::span<const float> gradients, double rate) {
    require_usable();
    WorkerRows& own = tables().rows();
    wait([&] { return own.has_room(); }, own.rules(table).name);
    own.push(table, ids, gradients, rate);
  }

  void visit_rows(std::size_t table, const std::function<void(const KeptRows&)>& take) {
    require_usable();
    WorkerRows& own = tables().rows();
    own.begin_visit(table, tables().clock());
    try {
      wait_to_meet(own, table);
      if (take) visit_all(own, table, take);
    } catch (...) {
      own.abandon();
      own.end_visit(table);  // so that the others end
      throw;
    }
    own.end_visit(table);
    wait_to_meet(own, table);
  }

  void restore_rows(std::size_t table, const KeptRows& rows) {
    require_usable();
    WorkerRows& own = tables().rows();
    wait([&] { return own.has_room(); }, own.rules(table).name);
    own.restore(table, rows);
  }

  void flush() {
    require_usable();
    wait_for_all({});
  }

  KeptTables gather() {
    require_usable();
    KeptTables kept{.step = steps(), .optimizer = setup_.optimizer, .state = tables().optimizer_state()};
    std::size_t elements = 0;
    for (const Buffer& weights : weights_) elements += weights.count;
    kept.weights.resize(elements);
    std::vector<std::span<float>> parts{kept.weights};
    if (tables().in_lockstep())
      for (auto& [name, values] : kept.state) parts.emplace_back(values);
    wait_for_all(parts);
    if (tables().in_lockstep() && tables().gathered_at() != kept.step)
      throw PeerLost(
          fmt::format("the servers gave up worker {} while it gathered their weights of step {}, and are at "
                      "step {}: raise their --patience",
                      options_.worker, kept.step, tables().gathered_at()));
    return kept;
  }

  KeptByCodec kept_by_codec() {
    require_usable();
    return {tables().packets(), tables().left_out()};
  }

  void restore(const KeptByCodec& kept) {
    require_usable();
    tables().restore(kept.tables, kept.packets);
  }

  void finish() {
    require_usable();
    wait([&] { return tables().finish(); }, "all tables");
    for (std::size_t table = 0; table < weights_.size(); ++table) tables().read(table);
    shell_.leave();
    has_finished_ = true;
  }

  [[nodiscard]] std::int64_t steps() const noexcept { return shell_.has_tables() ? shell_.tables().clock() : 0; }
  [[nodiscard]] const base::OwnProcess& process() const noexcept { return process_; }

  [[nodiscard]] WorkerStatistics statistics() const {
    process_.require("a worker of a parameter server");
    WorkerStatistics statistics = shell_.statistics();
    if (!shell_.has_tables()) return statistics;
    const Staleness staleness = shell_.tables().staleness();
    statistics.stalest = staleness.most;
    statistics.mean_staleness = staleness.mean;
    return statistics;
  }

 private:
  [[nodiscard]] UpdateStep step(double rate) const { return {rate, static_cast<std::uint64_t>(tables().clock()) + 1}; }

  void require_usable() {
    process_.require("a worker of a parameter server");
    base::require(shell_.has_tables(), "this worker has not started; allowed: after start");
    base::require(!has_finished_, "this worker has finished; allowed: before finish");
    shell_.require_whole();
  }

  void sync_first() {
    try {
      for (std::size_t table = 0; table < weights_.size(); ++table) sync(table);
    } catch (const Timeout& error) {
      if (options_.worker == 0) throw;
      throw Timeout(fmt::format("{}; worker 0 sends the first weights when it starts: start it, or another process as "
                                "worker 0 if it has ended",
                                error.what()),
                    error.where());
    }
  }

  void wait_to_meet(WorkerRows& own, std::size_t table) {
    const std::string& name = own.rules(table).name;
    try {
      wait([&] { return own.has_met(); }, name);
    } catch (const Timeout& error) {
      throw Timeout(
          fmt::format("not all workers have called visit_rows of table '{}', or ended it, within {} ms; every worker "
                      "calls it at the same point of its program",
                      name, options_.timeout.count()),
          error.where());
    }
  }

  void visit_all(WorkerRows& own, std::size_t table, const std::function<void(const KeptRows&)>& take) {
    for (std::size_t server = 0; server < setup_.servers; ++server)
      for (std::size_t slab = 0, slabs = 1; slab < slabs; ++slab) {
        own.visit(server, table, slab);
        wait([&] { return own.has_visited(); }, own.rules(table).name);
        const WorkerRows::Visited visited = own.take_visited();
        slabs = visited.slabs;
        if (!visited.rows.ids.empty()) take(visited.rows);
      }
  }

  void wait_for_all(std::span<const std::span<float>> parts) {
    tables().gather(parts);
    try {
      wait([&] { return tables().has_gathered(); }, "all tables");
    } catch (...) {
      tables().gather({});  // late arrivals must not be written to memory that is freed
      throw;
    }
  }

  [[nodiscard]] WorkerTables& tables() const noexcept { return shell_.tables(); }

  /// One attempt is short: another process may be replacing the server.
  void dial(std::size_t server, streams::DialEvents events) {
    streams_.dial({.address = options_.servers[server],
                   .server = static_cast<std::int32_t>(server),
                   .patience = std::min(server::kAttempt, options_.timeout)},
                  std::move(events));
  }

  /// Looks again after every arrival.
  template <class Ready>
  void wait(Ready&& is_ready, std::string_view for_what) {
    const base::Time deadline = clock_.now() + options_.timeout;
    std::uint64_t seen = shell_.arrivals();
    while (!is_ready()) {
      const bool has_come = wait_for(deadline, [&] { return shell_.arrivals() > seen; });
      shell_.require_whole();
      if (!has_come) throw late(for_what);
      seen = shell_.arrivals();
    }
  }

  /// Waits until `is_here`, a failure or the deadline. Returns `is_here()`. Calls WorkerOptions::while_waiting.
  bool wait_for(base::Time deadline, const std::function<bool()>& is_here) {
    const auto is_over = [&] { return is_here() || !shell_.is_whole(); };
    if (!options_.while_waiting) {
      streams_.wait(deadline, is_over);
      return is_here();
    }
    while (!streams_.wait(std::min<base::Time>(deadline, clock_.now() + kBetweenLooks), is_over) &&
           clock_.now() < deadline)
      options_.while_waiting();
    return is_here();
  }

  [[nodiscard]] Timeout late(std::string_view for_what) const {
    const std::string lost = shell_.out_of_reach();
    return Timeout(fmt::format("the weights of '{}' did not come within {} ms{}{}", for_what, options_.timeout.count(),
                               lost.empty() ? "" : "; out of reach: ", lost),
                   {.rank = static_cast<int>(options_.worker), .operation = "sync", .tensor = std::string(for_what)});
  }

  void end() {
    turns_.stop();
    shell_.end();
  }

  const WorkerOptions options_;
  const base::OwnProcess process_;
  const server::Storages storages_;
  Setup setup_;
  std::vector<Buffer> weights_;
  bool has_finished_ = false;
  const base::SteadyClock clock_;
  TurnThread turns_;
  WorkerShell shell_;
  streams::Streams streams_;  // last: its thread uses the members above
};

TableWorker::TableWorker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TableWorker::~TableWorker() {
  if (impl_->process().is_inherited()) static_cast<void>(impl_.release());  // it would wait for its parent's threads
}

std::unique_ptr<TableWorker> TableWorker::connect(const WorkerOptions& options) {
  require_allowed(options);
  return std::unique_ptr<TableWorker>(new TableWorker(std::make_unique<Impl>(options)));
}

std::size_t TableWorker::create_table(std::string name, Buffer weights, bool spared, std::size_t rows) {
  return impl_->create_table(std::move(name), weights, spared, rows);
}
std::size_t TableWorker::create_rows(const RowOptions& options) { return impl_->create_rows(options); }
void TableWorker::pull_rows(std::size_t table, std::span<const std::uint64_t> ids, std::span<float> rows) {
  impl_->pull_rows(table, ids, rows);
}
void TableWorker::push_rows(std::size_t table, std::span<const std::uint64_t> ids, std::span<const float> gradients,
                            double rate) {
  impl_->push_rows(table, ids, gradients, rate);
}
void TableWorker::visit_rows(std::size_t table, const std::function<void(const KeptRows&)>& take) {
  impl_->visit_rows(table, take);
}
void TableWorker::restore_rows(std::size_t table, const KeptRows& rows) { impl_->restore_rows(table, rows); }
void TableWorker::start(KeptTables earlier) { impl_->start(std::move(earlier)); }
void TableWorker::flush() { impl_->flush(); }
KeptTables TableWorker::gather() { return impl_->gather(); }
KeptByCodec TableWorker::kept_by_codec() { return impl_->kept_by_codec(); }
void TableWorker::restore(const KeptByCodec& kept) { impl_->restore(kept); }
void TableWorker::update(std::size_t table, Buffer gradient, double rate) { impl_->update(table, gradient, rate); }
void TableWorker::clock(double rate) { impl_->clock(rate); }
bool TableWorker::is_ready(std::size_t table) { return impl_->is_ready(table); }
void TableWorker::sync(std::size_t table) { impl_->sync(table); }
void TableWorker::finish() { impl_->finish(); }
std::int64_t TableWorker::steps() const noexcept { return impl_->steps(); }
WorkerStatistics TableWorker::statistics() const { return impl_->statistics(); }

}  // namespace syncopate
