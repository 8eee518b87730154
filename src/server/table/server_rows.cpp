// A server's tables of rows: requests of workers, records for the replica, and their repetition there.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/require.hpp"
#include "server/table/server_job.hpp"

namespace syncopate::server {

void ServerTables::create_rows(Job& job, std::size_t most_bytes) const {
  job.row_memory.emplace(most_bytes);
  for (const RowRules& rules : job.row_rules) {
    job.rows.push_back(std::make_unique<Job::KeptRows>());
    job.rows.back()->imaged = job.setup.first_step;
    job.rows.back()->table.with([&](auto& table) {
      table = std::make_unique<RowTable>(rules, job.setup.workers, *job.row_memory, job.setup.first_step);
    });
  }
}

/// Answers are sent with the table's lock held, so that none overtakes a later state. A request that comes before an
/// earlier push of its worker, which a broken stream has swallowed, is not answered: the worker repeats both.
void ServerTables::receive_rows(Job& job, std::size_t worker, const Message& message) {
  if (message.block >= job.rows.size())
    throw Corrupt(fmt::format("a worker names table {} of rows, of {}", message.block, job.rows.size()));
  job.rows[message.block]->table.with([&](auto& table) {
    const bool is_read = message.kind == MessageKind::pull_rows || message.kind == MessageKind::visit_rows;
    if (!is_read) return take_push(job, message.block, *table, worker, message);
    if (table->marks().applied_of(worker) < static_cast<std::uint64_t>(message.least)) return;
    send_rows(*table, worker, message);
  });
}

void ServerTables::send_rows(RowTable& table, std::size_t worker, const Message& request) {
  Message answer{.block = request.block, .version = request.version};
  if (request.kind == MessageKind::pull_rows) {
    answer.kind = MessageKind::rows;
    answer.body = table.pull(request.body.bytes);
  } else {
    answer.kind = MessageKind::visited;
    answer.last = static_cast<Clock>(table.slabs());
    if (const auto slab = static_cast<std::size_t>(request.first); slab < table.slabs()) {
      answer.first = static_cast<Clock>(table.rows_in(slab));
      answer.body = table.slab(slab);
    }
  }
  log_.send({worker, kRowPriority, std::move(answer)});
}

void ServerTables::take_push(Job& job, std::uint32_t index, RowTable& table, std::size_t worker,
                             const Message& message) {
  const auto before = table.marks().common();
  const RowTable::Taken taken = table.push(worker, message);
  if (taken == RowTable::Taken::early) return;
  if (taken == RowTable::Taken::applied) log_.append({.event = Event::push_rows, .worker = worker, .message = message});
  if (table.marks().common() != before) return end_wait(job, index, table);
  if (table.marks().has_met(worker)) send_pushed(index, table, worker);
}

void ServerTables::send_pushed(std::uint32_t index, RowTable& table, std::size_t worker) {
  log_.send({worker,
             kRowPriority,
             {.kind = MessageKind::pushed, .block = index, .version = table.marks().applied_of(worker)}});
}

/// The workers' common marks have changed: takes the image that is due, then acknowledges the marks of all workers that
/// have met.
void ServerTables::end_wait(Job& job, std::uint32_t index, RowTable& table) {
  if (image_every_ > 0) take_image(job, index, table);
  for (std::size_t worker = 0; worker < job.setup.workers; ++worker)
    if (table.marks().takes_part(worker) && table.marks().has_met(worker)) send_pushed(index, table, worker);
}

/// A process that has sent nothing before counts its pushes from 1. The step from which it takes part can be the one
/// that the others wait for.
void ServerTables::meet_rows(Job& job, std::size_t worker, const Message& setup) {
  const Clock from = std::max(setup.first, job.setup.first_step);
  for (std::uint32_t index = 0; index < job.rows.size(); ++index)
    job.rows[index]->table.with([&](auto& table) {
      const auto before = table->marks().common();
      if (setup.last != 0)
        table->marks().join(worker, from, setup.version, static_cast<std::uint64_t>(setup.step));
      else
        table->marks().come_back(worker);
      log_.append({.event = setup.last != 0 ? Event::join_rows : Event::come_back_rows,
                   .worker = worker,
                   .message = {.block = index, .first = from, .version = setup.version, .step = setup.step}});
      if (table->marks().common() != before) end_wait(job, index, *table);
    });
}

void ServerTables::leave_rows(Job& job, std::size_t worker) {
  for (std::uint32_t index = 0; index < job.rows.size(); ++index)
    job.rows[index]->table.with([&](auto& table) {
      const auto before = table->marks().common();
      table->marks().leave(worker);
      log_.append({.event = Event::leave_rows, .worker = worker, .message = {.block = index}});
      if (table->marks().common() != before) end_wait(job, index, *table);
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

namespace {

void repeat(RowTable& table, const Record& record) {
  const Message& message = record.message;
  if (record.event == Event::image_of_rows) return table.restore(message.body.bytes, message.version);
  if (record.event == Event::join_rows)
    return table.marks().join(record.worker, message.first, message.version, static_cast<std::uint64_t>(message.step));
  if (record.event == Event::leave_rows) return table.marks().leave(record.worker);
  if (record.event == Event::come_back_rows) return table.marks().come_back(record.worker);
  if (table.push(record.worker, message) != RowTable::Taken::applied)
    throw Corrupt(fmt::format("a record repeats push {} of worker {}", message.version, record.worker));
}

}  // namespace

void ServerTables::apply_to_rows(Job& job, const Record& record) {
  const Message& message = record.message;
  if (message.block >= job.rows.size() || record.worker >= job.setup.workers)
    throw Corrupt(fmt::format("a record of table {} of rows, of {}, and worker {} of {}", message.block,
                              job.rows.size(), record.worker, job.setup.workers));
  Job::KeptRows& kept = *job.rows[message.block];
  const bool is_image = record.event == Event::image_of_rows;
  if (kept.is_missing && !is_image) return;  // the image to come includes it
  kept.table.with([&](auto& table) { repeat(*table, record); });
  if (is_image && message.last == 1 && kept.is_missing.exchange(false)) --job.missing;
}

}  // namespace syncopate::server
