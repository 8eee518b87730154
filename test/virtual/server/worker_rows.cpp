// The rows of a virtual worker: in each step it adds 1 to some of them, and reads some.
#include <fmt/format.h>

#include <cstring>

#include "base/random.hpp"
#include "server/rows/row_table.hpp"
#include "virtual/server/job.hpp"

namespace syncopate::server {

namespace {
constexpr std::uint32_t kIds = 50, kAtOnce = 12;
}  // namespace

/// Ids repeat within a call, and between workers.
void WorkerProcess::push_rows() {
  for (std::size_t table = 0; table < pushed.size(); ++table) {
    const base::CounterRandom random{job_.options.seed, index_, static_cast<std::uint64_t>(made), table};
    ids_.clear();
    for (std::uint64_t i = 0; i <= random.below(kAtOnce, 0); ++i) ids_.push_back(random.below(kIds, 1 + i));
    for (const std::uint64_t id : ids_) {
      ++pushed[table][id];
      ++pushed_in[table][tables().clock()][id];
    }
    const std::vector<float> gradients(ids_.size() * job_.setup.rows[table].width, -1.0F);
    tables().rows().push(table, ids_, gradients, 1);
  }
  if (!pushed.empty()) pull_rows(static_cast<std::size_t>(made) % pushed.size());
}

void WorkerProcess::pull_rows(std::size_t table) {
  const base::CounterRandom random{job_.options.seed, index_, static_cast<std::uint64_t>(made)};
  ids_.clear();
  pushed_then_.clear();
  for (std::uint64_t i = 0; i <= random.below(kAtOnce, 0); ++i) {
    ids_.push_back(random.below(kIds, 1 + i));
    pushed_then_.push_back(pushed[table][ids_.back()]);
  }
  rows_.assign(ids_.size() * job_.setup.rows[table].width, -1.0F);
  pulled_ = table;
  tables().rows().pull(table, ids_, rows_);
}

/// A worker reads all its own updates, and no update twice.
bool WorkerProcess::are_pulled() {
  if (!pulled_) return true;
  if (!tables().rows().has_pulled()) return false;
  const std::size_t table = *std::exchange(pulled_, std::nullopt), width = job_.setup.rows[table].width;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::uint64_t id = ids_[i / width], least = pushed_then_[i / width], most = job_.pushes_of(table, id);
    if (rows_[i] < static_cast<float>(least) || rows_[i] > static_cast<float>(most))
      job_.law(fmt::format("worker {} reads {} in row {} of table {}; allowed: {} to {}", index_, rows_[i], id, table,
                           least, most));
  }
  return true;
}

/// A visit after each number of steps that is due; it ends as soon as it has begun. The worker goes on after it.
bool WorkerProcess::has_visited() {
  const Clock every = job_.options.visit_every, steps = tables().clock();
  const bool is_due = every > 0 && steps % every == 0 && steps > visited_;
  if (visit_ == Visit::none && is_due) {
    visited_ = steps;
    visit_ = Visit::begun;
    tables().rows().begin_visit(0, steps);
  }
  if (visit_ == Visit::none) return true;
  if (!tables().rows().has_met()) return false;
  if (visit_ == Visit::ended) {
    visit_ = Visit::none;
    return true;
  }
  visit_ = Visit::ended;
  tables().rows().end_visit(0);
  return false;
}

std::uint64_t Job::pushes_before(Clock step, std::size_t table, std::uint64_t id, bool steady) const {
  std::uint64_t count = 0;
  for (const WorkerProcess* process : processes()) {
    if (steady && options.accidents.contains(process->index())) continue;
    for (const auto& [in, rows] : process->pushed_in[table])
      if (const auto found = rows.find(id); in < step && found != rows.end()) count += found->second;
  }
  return count;
}

/// The rows of an image have the workers' pushes of its steps, and in lockstep no others. Those of a worker that was
/// given up may be missing.
void Job::check_image(std::size_t server, const ServerTables::Image& image) {
  ++images;
  const std::size_t blocks = image.pieces - setup.rows.size();
  if (image.piece < blocks) return;
  const std::size_t table = image.piece - blocks;
  const RowRules table_rules(setup.rows[table], table, {});
  RowMemory memory(kMemory);
  RowTable kept(table_rules, setup.workers, memory);
  for (std::size_t part = 0; part < image.parts.size(); ++part) kept.restore(image.parts[part].bytes, part);
  for (std::uint64_t id = 0; id < kIds; ++id) {
    if (server_of_row(id, servers.size()) != server) continue;
    float has = 0;
    std::memcpy(&has, kept.pull(std::as_bytes(std::span(&id, 1))).bytes.data(), sizeof has);
    const std::uint64_t least = pushes_before(image.step, table, id, true);
    const std::uint64_t most = rules.in_lockstep() ? pushes_before(image.step, table, id) : pushes_of(table, id);
    if (has < static_cast<float>(least) || has > static_cast<float>(most))
      law(fmt::format("an image of step {} has {} updates of row {} of table {}; allowed: {} to {}", image.step, has,
                      id, table, least, most));
  }
}

}  // namespace syncopate::server
