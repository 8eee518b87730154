// A server's tables: set up by the first worker, then used one block at a time, each under its own lock.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/random.hpp"
#include "base/require.hpp"
#include "server/refusal.hpp"
#include "server/table/server_job.hpp"

namespace syncopate::server {

namespace {
constexpr const char* kNoHello = "a worker's first message is not a Hello";
}  // namespace

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
  // average; of a storage what it keeps and combines.
  const optim::Rule& rule = job->rules.optimizer;
  const std::size_t average = rule.trust == nullptr ? 0 : 1;
  const std::size_t decoded = job->rules.storages.combine ? setup.workers : 0;
  const std::size_t copies = 2 + job->rules.storages.kept +
                             (job->rules.in_lockstep() ? rule.state.size() + setup.workers + average + decoded : 0);
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

void ServerTables::require_fitting(std::size_t worker, const WorkerMessage& first) const {
  const auto* const hello = std::get_if<Hello>(&first);
  if (hello == nullptr) throw Corrupt(kNoHello);
  const Setup setup = Setup::of(text_of(hello->setup), catalogue_);
  const std::shared_ptr<Job> job = this->job();
  if (!job) return;
  require_fitting(*job, worker, setup);
  if (worker < job->setup.workers && job->missing == 0) require_known(*job, worker, *hello);
}

void ServerTables::require_fitting(const Job& job, std::size_t worker, const Setup& setup) {
  if (const std::string differs = difference(setup, job.setup); !differs.empty())
    throw Mismatch(fmt::format("worker {} wants another job than {}: {}", worker,
                               job.restored.empty() ? "the workers before it" : job.restored, differs));
}

/// Refuses a process that returns and has pushes that this server does not count: those after the snapshot from which
/// the job was restored, or all of them if another process has taken its place since.
void ServerTables::require_known(const Job& job, std::size_t worker, const Hello& hello) const {
  if (hello.is_new) return;
  if (!job.restored.empty() && !job.met[worker])
    throw PeerLost(fmt::format("server {} was restarted from {}: later updates are lost; {}", server_, job.restored,
                               job.setup.servers == 1
                                   ? "restart the workers; they resume from there"
                                   : "restart all servers, then restart the workers; they resume from the "
                                     "newest snapshot that all servers have"));
  const auto is_known = [&](std::uint64_t process) { return process == hello.process; };
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
void ServerTables::identify(Job& job, const Hello& hello) const {
  const auto ticks = static_cast<std::uint64_t>(clock_->now().time_since_epoch().count());
  std::uint64_t unknown = 0;
  job.origin.compare_exchange_strong(unknown, base::mixed(hello.process ^ base::mixed(ticks)) | 1);
  std::uint32_t none = 0;
  const bool begins = job.origins.compare_exchange_strong(none, hello.origins) && hello.origins != 0;
  if (begins && begun_) begun_(job.origin_step);
}

/// The job that the worker's setup fits, and whether it has just created it.
std::pair<std::shared_ptr<ServerTables::Job>, bool> ServerTables::agree(std::size_t worker, const Hello& hello) try {
  const Setup setup = Setup::of(text_of(hello.setup), catalogue_);
  base::require(worker < setup.workers, "worker {} is outside a job of {} workers", worker, setup.workers);
  bool is_first = false;
  std::shared_ptr<Job> job = job_.with([&](auto& kept) {
    is_first = !kept;
    if (is_first && !hello.is_new)
      throw PeerLost(
          fmt::format("server {} has lost its tables: it was restarted, and no replica had them; restart the "
                      "job, with servers under --replicas 1 to survive the next loss",
                      server_));
    if (!kept) kept = create(setup);
    return kept;
  });
  require_fitting(*job, worker, setup);
  require_known(*job, worker, hello);
  return {std::move(job), is_first};
} catch (const Misuse& misuse) {
  throw Refusal(misuse.what());
}

void ServerTables::set_up(std::size_t worker, const Hello& hello) {
  const auto [job, is_first] = agree(worker, hello);
  identify(*job, hello);
  if (is_first) begin_transfer(*job);
  job->met[worker] = true;
  renew(worker);  // once more: its previous stream may have asked until now
  meet_rows(*job, worker, hello);
  Welcome welcome{
      .snapshot_every = image_every_, .origin = job->origin, .origin_step = job->origin_step, .origins = job->origins};
  for (const auto& rows : job->rows) {
    welcome.least = std::max<Clock>(welcome.least, rows->imaged);
    const auto meeting = rows->table.with([&](auto& table) { return table->marks().meeting_of(worker); });
    welcome.meeting = std::max(welcome.meeting, static_cast<Clock>(meeting));
  }
  for (std::size_t index = 0; index < job->blocks.size(); ++index)
    job->blocks[index]->kept.with([&](ServerBlock& block) {
      const auto at = static_cast<std::uint32_t>(index);
      if (!hello.is_new) change(index, block, worker, change::ComeBack{at});
      if (hello.is_new && (hello.step > 0 || block.applied_of(worker) == job->setup.first_step))
        change(index, block, worker, change::Join{.block = at, .from = hello.step, .process = hello.process});
      welcome.least = std::max(welcome.least, block.least());
      welcome.last = std::max(welcome.last, block.applied_of(worker));
      answer(*job, index, block);
    });
  step_jointly(*job);
  log_.send({worker, 0, welcome});
  if (const Clock told = job->told[worker]; told > 0) log_.send({worker, 0, Want{told}});
}

void ServerTables::receive(std::size_t worker, const WorkerMessage& message) {
  if (const auto* const hello = std::get_if<Hello>(&message)) return set_up(worker, *hello);
  const std::shared_ptr<Job> job = this->job();
  if (!job || worker >= job->setup.workers) throw Corrupt(kNoHello);
  std::visit(OneOf{[](const Hello&) {}, [&](const Finish&) { leave(worker); },
                   [&](const FirstValues& first) {
                     with_block(*job, first.block, [&](auto& block) { change(first.block, block, worker, first); });
                   },
                   [&](const Push& push) {
                     with_block(*job, push.block, [&](auto& block) { change(push.block, block, worker, push); });
                   },
                   [&](const Seen& seen) { with_block(*job, seen.block, [&](auto& block) { block.see(worker); }); },
                   [&](const Fetch& fetch) {
                     with_block(*job, fetch.block, [&](auto& block) { block.ask(worker, fetch.answer); });
                   },
                   [&](const auto& of_rows) { receive_rows(*job, worker, of_rows); }},
             message);
}

/// Answers the workers that can be answered afterwards.
void ServerTables::with_block(Job& job, std::uint32_t index, const std::function<void(ServerBlock&)>& use) {
  if (index >= job.blocks.size()) throw Corrupt(fmt::format("a worker names block {} of {}", index, job.blocks.size()));
  const Block& at = job.blocks[index]->block;
  const bool may_step = job.blocks[index]->kept.with([&](ServerBlock& block) {
    use(block);
    answer(job, index, block);
    return at.is_joint && block.is_complete();
  });
  if (may_step) step_jointly(job, at.table);
}

namespace {

Clocks clocks_of(std::size_t index, const ServerBlock& block) {
  const std::vector<Clock> clocks = block.clocks();
  auto bytes = std::make_shared<std::vector<std::byte>>(clocks.size() * sizeof(std::uint64_t));
  for (std::size_t worker = 0; worker < clocks.size(); ++worker)
    base::put(*bytes, worker * sizeof(std::uint64_t), static_cast<std::uint64_t>(clocks[worker]));
  const base::ConstBytes all(*bytes);
  return {static_cast<std::uint32_t>(index), {std::move(bytes), all}};
}

}  // namespace

/// Called with the block's lock held, so that no answer overtakes a later state of the same block.
void ServerTables::answer(Job& job, std::size_t index, ServerBlock& block) {
  const auto send = [&](std::size_t worker, const auto& made) {
    const std::uint64_t version = block.version();
    const std::uint64_t priority = job.rules.priority_of(job.blocks[index]->block.table);
    Weights weights = made();
    weights.block = static_cast<std::uint32_t>(index);
    if (block.version() != version) log_.append({.change = change::Show{weights.block}});
    if (job.rules.consistency.sees_clocks) log_.send({worker, priority, clocks_of(index, block)});
    log_.send({worker, priority, std::move(weights)});
  };
  for (const std::size_t worker : block.answerable()) send(worker, [&] { return block.answer(worker, now_s()); });
  for (const std::size_t worker : block.unasked()) send(worker, [&] { return block.push_weights(worker); });
  const Clock wanted = block.wanted();
  if (job.rules.in_lockstep() || wanted == 0) return;  // in lockstep every worker sends every step
  for (std::size_t worker = 0; worker < job.told.size(); ++worker) {
    if (!block.takes_part(worker) || block.clock_of(worker) >= wanted) continue;
    Clock told = job.told[worker];
    while (told < wanted && !job.told[worker].compare_exchange_weak(told, wanted)) {
    }
    if (told < wanted) log_.send({worker, 0, Want{wanted}});
  }
}

void ServerTables::leave(std::size_t worker) {
  const std::shared_ptr<Job> job = this->job();
  if (!job || worker >= job->setup.workers) return;
  for (std::size_t index = 0; index < job->blocks.size(); ++index)
    job->blocks[index]->kept.with([&](ServerBlock& block) {
      change(index, block, worker, change::Leave{static_cast<std::uint32_t>(index)});
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
