// A server's tables: set up by the first worker, then used one block at a time, each under its own lock.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/random.hpp"
#include "base/require.hpp"
#include "server/table/refusal.hpp"
#include "server/table/server_job.hpp"

namespace syncopate::server {

std::size_t ServerTables::kept_bytes() const {
  const auto job = this->job();
  if (!job) return 0;
  std::size_t bytes = job->row_memory->used_bytes();
  for (const auto& kept : job->blocks) bytes += kept->block.elements.size() * sizeof(float);
  return bytes;
}

ServerTables::ServerTables(std::size_t server, std::size_t memory_bytes, Send send, Forward forward,
                           const Catalogue& catalogue, std::shared_ptr<const base::Clock> clock)
    : server_(server),
      memory_bytes_(memory_bytes),
      catalogue_(catalogue),
      clock_(std::move(clock)),
      log_(std::move(send), std::move(forward)) {}
ServerTables::ServerTables(std::size_t server, NoValues no_values, Send send, const Catalogue& catalogue,
                           std::shared_ptr<const base::Clock> clock)
    : server_(server),
      memory_bytes_(std::numeric_limits<std::size_t>::max()),
      catalogue_(catalogue),
      no_values_(no_values),
      clock_(std::move(clock)),
      log_(std::move(send), nullptr) {}
ServerTables::~ServerTables() = default;

std::shared_ptr<ServerTables::Job> ServerTables::job() const {
  return job_.with([](const auto& job) { return job; });
}

std::shared_ptr<const Setup> ServerTables::setup() const {
  const auto job = this->job();
  const auto has_come = [](const auto& met) { return met.load(); };
  if (job && !job->restored.empty() && std::ranges::none_of(job->met, has_come)) return nullptr;
  return job ? std::shared_ptr<const Setup>(job, &job->setup) : nullptr;
}

std::shared_ptr<ServerTables::Job> ServerTables::create(const Setup& setup) const {
  if (const std::string missing = missing_name(setup); !missing.empty())
    throw Mismatch(fmt::format("server {} lacks {}, which the workers use; give servers and workers the same catalogue",
                               server_, missing));
  auto job = std::make_shared<Job>(setup, no_values_);
  base::require(server_ < setup.servers, "this is server {} and the job has {} servers", server_, setup.servers);
  // Weights, their copy for answers, and the states of rules, the pending updates of workers, and for norms the
  // average.
  const optim::Rule& rule = job->rules.optimizer;
  const std::size_t average = rule.trust == nullptr ? 0 : 1;
  const std::size_t copies = 2 + (job->rules.in_lockstep() ? rule.state.size() + setup.workers + average : 0);
  double bytes = 0;
  for (const TableShape& table : setup.tables)
    bytes += static_cast<double>(copies * sizeof(float)) * static_cast<double>(table.elements);
  base::require(bytes / static_cast<double>(setup.servers) <= static_cast<double>(memory_bytes_),
                "the job's tables take {:.0f} MiB on each of {} servers, {} MiB are allowed (--memory)",
                bytes / static_cast<double>(setup.servers) / (1 << 20), setup.servers, memory_bytes_ >> 20);
  create_rows(*job, memory_bytes_ - static_cast<std::size_t>(bytes / static_cast<double>(setup.servers)));
  for (const Block& block : kept_blocks_of(setup, job->rules)) {
    if (block.server != server_) continue;
    if (block.is_joint) job->joint[block.table].push_back(job->blocks.size());
    job->blocks.push_back(
        std::make_unique<Job::Kept>(block, ServerBlock(job->rules, block, setup.tables[block.table].spared)));
  }
  return job;
}

void ServerTables::require_fitting(std::size_t worker, const Message& first) const {
  if (first.kind != MessageKind::setup) throw Corrupt("a worker's first message is not a setup");
  const Setup setup = Setup::of(text_of(first.body), catalogue_);
  const std::shared_ptr<Job> job = this->job();
  if (!job) return;
  require_fitting(*job, worker, setup);
  if (worker < job->setup.workers && job->missing == 0) require_known(*job, worker, first);
}

void ServerTables::require_fitting(const Job& job, std::size_t worker, const Setup& setup) {
  if (const std::string differs = difference(setup, job.setup); !differs.empty())
    throw Mismatch(fmt::format("worker {} wants another job than {}: {}", worker,
                               job.restored.empty() ? "the workers before it" : job.restored, differs));
}

/// Refuses a process that returns and has pushes that this server does not count: those after the snapshot from which
/// the job was restored, or all of them if another process has taken its place since.
void ServerTables::require_known(const Job& job, std::size_t worker, const Message& message) const {
  if (message.last != 0) return;
  if (!job.restored.empty() && !job.met[worker])
    throw PeerLost(fmt::format("server {} was restarted from {}: later updates are lost; {}", server_, job.restored,
                               job.setup.servers == 1
                                   ? "restart the workers; they resume from there"
                                   : "restart all servers, then restart the workers; they resume from the "
                                     "newest snapshot that all servers have"));
  const auto is_known = [&](std::uint64_t process) { return process == message.version; };
  const bool has_blocks = std::ranges::all_of(job.blocks, [&](const auto& kept) {
    return is_known(kept->kept.with([&](const ServerBlock& block) { return block.process_of(worker); }));
  });
  const bool has_rows = std::ranges::all_of(job.rows, [&](const auto& kept) {
    return is_known(kept->table.with([&](const auto& table) { return table->marks().process_of(worker); }));
  });
  if (!has_blocks || !has_rows)
    throw Mismatch(
        fmt::format("this process was away, and another one has taken its place as worker {}: server {} applies no "
                    "further updates of it; end this process, and start another one if worker {} is still needed",
                    worker, server_, worker));
}

/// The process that comes first is another one for every creation, unless the server is lost while it starts: then the
/// clock differs. A replica receives the number, so that a server that continues from it keeps it.
void ServerTables::identify(Job& job, const Message& setup) const {
  const auto ticks = static_cast<std::uint64_t>(clock_->now().time_since_epoch().count());
  std::uint64_t unknown = 0;
  job.origin.compare_exchange_strong(unknown, base::mixed(setup.version ^ base::mixed(ticks)) | 1);
  std::uint32_t none = 0;
  const bool begins = job.origins.compare_exchange_strong(none, setup.block) && setup.block != 0;
  if (begins && begun_) begun_(job.origin_step);
}

/// The job that the worker's setup fits, and whether it has just created it.
std::pair<std::shared_ptr<ServerTables::Job>, bool> ServerTables::agree(std::size_t worker,
                                                                        const Message& message) try {
  const Setup setup = Setup::of(text_of(message.body), catalogue_);
  base::require(worker < setup.workers, "worker {} is outside a job of {} workers", worker, setup.workers);
  bool is_first = false;
  std::shared_ptr<Job> job = job_.with([&](auto& kept) {
    is_first = !kept;
    if (is_first && message.last == 0)
      throw PeerLost(
          fmt::format("server {} has lost its tables: it was restarted, and no replica had them; restart the "
                      "job, with servers under --replicas 1 to survive the next loss",
                      server_));
    if (!kept) kept = create(setup);
    return kept;
  });
  require_fitting(*job, worker, setup);
  require_known(*job, worker, message);
  return {std::move(job), is_first};
} catch (const Misuse& misuse) {
  throw Refusal(misuse.what());
}

void ServerTables::set_up(std::size_t worker, const Message& message) {
  const auto [job, is_first] = agree(worker, message);
  identify(*job, message);
  if (is_first) begin_transfer(*job);
  job->met[worker] = true;
  renew(worker);  // once more: its previous stream may have asked until now
  meet_rows(*job, worker, message);
  Message welcome{.kind = MessageKind::welcome,
                  .block = job->origins,
                  .first = image_every_,
                  .version = job->origin,
                  .step = job->origin_step};
  std::uint64_t meeting = 0;
  for (const auto& rows : job->rows) {
    welcome.least = std::max<Clock>(welcome.least, rows->imaged);
    meeting = std::max(meeting, rows->table.with([&](auto& table) { return table->marks().meeting_of(worker); }));
  }
  welcome.body = payload_of(meeting);
  for (std::size_t index = 0; index < job->blocks.size(); ++index)
    job->blocks[index]->kept.with([&](ServerBlock& block) {
      if (message.last == 0) change(index, block, {.event = Event::come_back, .worker = worker});
      if (message.last != 0 && (message.first > 0 || block.applied_of(worker) == job->setup.first_step))
        change(
            index, block,
            {.event = Event::join, .worker = worker, .message = {.first = message.first, .version = message.version}});
      welcome.least = std::max(welcome.least, block.least());
      welcome.last = std::max(welcome.last, block.applied_of(worker));
      answer(*job, index, block);
    });
  step_jointly(*job);
  log_.send({worker, 0, welcome});
  if (const Clock told = job->told[worker]; told > 0)
    log_.send({worker, 0, {.kind = MessageKind::want, .least = told}});
}

void ServerTables::receive(std::size_t worker, const Message& message) {
  if (message.kind == MessageKind::setup) return set_up(worker, message);
  const std::shared_ptr<Job> job = this->job();
  if (!job || worker >= job->setup.workers) throw Corrupt("a worker's first message is not a setup");
  if (message.kind == MessageKind::finish) return leave(worker);
  if (message.kind >= MessageKind::push_rows && message.kind <= MessageKind::visit_rows)
    return receive_rows(*job, worker, message);
  if (message.block >= job->blocks.size())
    throw Corrupt("a worker names block " + std::to_string(message.block) + " of " +
                  std::to_string(job->blocks.size()));
  const Block& at = job->blocks[message.block]->block;
  const bool may_step = job->blocks[message.block]->kept.with([&](ServerBlock& block) {
    if (message.kind == MessageKind::initial)
      change(message.block, block, {.event = Event::initial, .message = message});
    if (message.kind == MessageKind::push)
      change(message.block, block, {.event = Event::push, .worker = worker, .message = message});
    if (message.kind == MessageKind::fetch) block.ask(worker, message);
    answer(*job, message.block, block);
    return at.is_joint && block.is_complete();
  });
  if (may_step) step_jointly(*job, at.table);
}

/// Called with the block's lock held, so that no answer overtakes a later state of the same block.
void ServerTables::answer(Job& job, std::size_t index, ServerBlock& block) {
  for (const std::size_t worker : block.answerable()) {
    const std::uint64_t version = block.version();
    Message message = block.answer(worker, now_s());
    message.block = static_cast<std::uint32_t>(index);
    if (block.version() != version) log_.append({.event = Event::show, .message = {.block = message.block}});
    log_.send({worker, 1 + job.blocks[index]->block.table, std::move(message)});
  }
  const Clock wanted = block.wanted();
  if (job.rules.in_lockstep() || wanted == 0) return;  // in lockstep every worker sends every step
  for (std::size_t worker = 0; worker < job.told.size(); ++worker) {
    if (!block.takes_part(worker) || block.clock_of(worker) >= wanted) continue;
    Clock told = job.told[worker];
    while (told < wanted && !job.told[worker].compare_exchange_weak(told, wanted)) {
    }
    if (told < wanted) log_.send({worker, 0, {.kind = MessageKind::want, .least = wanted}});
  }
}

void ServerTables::leave(std::size_t worker) {
  const std::shared_ptr<Job> job = this->job();
  if (!job || worker >= job->setup.workers) return;
  for (std::size_t index = 0; index < job->blocks.size(); ++index)
    job->blocks[index]->kept.with([&](ServerBlock& block) {
      change(index, block, {.event = Event::leave, .worker = worker});
      answer(*job, index, block);
    });
  step_jointly(*job);
  leave_rows(*job, worker);
}

std::vector<std::size_t> ServerTables::departed() const {
  const std::shared_ptr<Job> job = this->job();
  if (!job || job->blocks.empty()) return {};
  std::vector<bool> takes_part(job->setup.workers);
  for (const auto& kept : job->blocks)
    kept->kept.with([&](const ServerBlock& block) {
      for (std::size_t worker = 0; worker < takes_part.size(); ++worker)
        takes_part[worker] = takes_part[worker] || block.takes_part(worker);
    });
  std::vector<std::size_t> departed;
  for (std::size_t worker = 0; worker < takes_part.size(); ++worker)
    if (!takes_part[worker]) departed.push_back(worker);
  return departed;
}

}  // namespace syncopate::server
