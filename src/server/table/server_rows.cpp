// A server's tables of rows: requests of workers, records for the replica, and their repetition there.
#include <fmt/format.h>

#include "base/require.hpp"
#include "server/table/server_job.hpp"

namespace syncopate::server {

void ServerTables::create_rows(Job& job, std::size_t most_bytes) const {
  base::require(
      job.row_rules.empty() || image_every_ == 0,
      "a job with tables of rows on servers with --snapshots, which would leave them out; allowed: --replicas 1");
  job.row_memory.emplace(most_bytes);
  for (const RowRules& rules : job.row_rules) {
    job.rows.push_back(std::make_unique<Job::KeptRows>());
    job.rows.back()->table.with(
        [&](auto& table) { table = std::make_unique<RowTable>(rules, job.setup.workers, *job.row_memory); });
  }
}

/// Answers are sent with the table's lock held, so that none overtakes a later state. A request that comes before an
/// earlier push of its worker, which a broken stream has swallowed, is not answered: the worker repeats both.
void ServerTables::receive_rows(Job& job, std::size_t worker, const Message& message) {
  if (message.block >= job.rows.size())
    throw Corrupt(fmt::format("a worker names table {} of rows, of {}", message.block, job.rows.size()));
  job.rows[message.block]->table.with([&](auto& table) {
    if (message.kind == MessageKind::push_rows) return take_push(*table, worker, message);
    if (table->applied_of(worker) < static_cast<std::uint64_t>(message.least)) return;
    log_.send({worker,
               kRowPriority,
               {.kind = MessageKind::rows,
                .block = message.block,
                .version = message.version,
                .body = table->pull(message.body.bytes)}});
  });
}

void ServerTables::take_push(RowTable& table, std::size_t worker, const Message& message) {
  const RowTable::Taken taken = table.push(worker, message);
  if (taken == RowTable::Taken::early) return;
  if (taken == RowTable::Taken::applied) log_.append({.event = Event::push_rows, .worker = worker, .message = message});
  log_.send({worker,
             kRowPriority,
             {.kind = MessageKind::pushed, .block = message.block, .version = table.applied_of(worker)}});
}

/// A process that has sent nothing before counts its pushes from 1.
void ServerTables::join_rows(Job& job, std::size_t worker) {
  for (std::uint32_t index = 0; index < job.rows.size(); ++index)
    job.rows[index]->table.with([&](auto& table) {
      table->join(worker);
      log_.append({.event = Event::join_rows, .worker = worker, .message = {.block = index}});
    });
}

void ServerTables::transfer_rows(const Job& job, const Forward& to) {
  for (std::uint32_t index = 0; index < job.rows.size(); ++index)
    job.rows[index]->table.with([&](const auto& table) {
      table->image([&](Payload bytes, std::uint64_t part, bool is_last) {
        to({.sequence = log_.sequence(),
            .event = Event::image_of_rows,
            .message = {.block = index, .last = is_last ? 1 : 0, .version = part, .body = std::move(bytes)}});
      });
    });
}

void ServerTables::apply_to_rows(Job& job, const Record& record) {
  const Message& message = record.message;
  if (message.block >= job.rows.size() || record.worker >= job.setup.workers)
    throw Corrupt(fmt::format("a record of table {} of rows, of {}, and worker {} of {}", message.block,
                              job.rows.size(), record.worker, job.setup.workers));
  Job::KeptRows& kept = *job.rows[message.block];
  const bool is_image = record.event == Event::image_of_rows;
  if (kept.is_missing && !is_image) return;  // the image to come includes it
  kept.table.with([&](auto& table) {
    if (is_image) return table->restore(message.body.bytes, message.version);
    if (record.event == Event::join_rows) return table->join(record.worker);
    if (table->push(record.worker, message) != RowTable::Taken::applied)
      throw Corrupt(fmt::format("a record repeats push {} of worker {}", message.version, record.worker));
  });
  if (is_image && message.last == 1 && kept.is_missing.exchange(false)) --job.missing;
}

}  // namespace syncopate::server
