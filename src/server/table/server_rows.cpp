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

namespace {

/// Calls `use` with a table of rows and its lock held, so that no answer overtakes a later state.
template <class Rows, class Use>
void with_table(Rows& rows, std::uint32_t index, const Use& use) {
  if (index >= rows.size()) throw Corrupt(fmt::format("a worker names table {} of rows, of {}", index, rows.size()));
  rows[index]->table.with([&](auto& table) { use(*table); });
}

/// A request that comes before an earlier push of its worker, which a broken stream has swallowed, is not answered: the
/// worker repeats both.
bool may_answer(RowTable& table, std::size_t worker, std::uint64_t pushes) {
  return table.marks().applied_of(worker) >= pushes;
}

/// Throws Corrupt for a push that is not the worker's next one.
void repeat_push(RowTable& table, std::size_t worker, const auto& push) {
  if (table.push(worker, push) != RowTable::Taken::applied)
    throw Corrupt(fmt::format("a record repeats push {} of worker {}", push.number, worker));
}

void repeat(RowTable& table, std::size_t worker, const Change& change) {
  std::visit(OneOf{[&](const change::ImageOfRows& image) { table.restore(image.image.bytes, image.part); },
                   [&](const change::JoinRows& join) {
                     table.marks().join(worker, join.from, join.process, static_cast<std::uint64_t>(join.meeting));
                   },
                   [&](const change::LeaveRows&) { table.marks().leave(worker); },
                   [&](const change::ComeBackRows&) { table.marks().come_back(worker); },
                   [&](const PushRows& push) { repeat_push(table, worker, push); },
                   [&](const RestoreRows& push) { repeat_push(table, worker, push); },
                   [&](const MarkRows& push) { repeat_push(table, worker, push); }, [](const auto& /*of a block*/) {}},
             change);
}

}  // namespace

void ServerTables::receive_rows(Job& job, std::size_t worker, const PullRows& pull) {
  with_table(job.rows, pull.table, [&](RowTable& table) {
    if (!may_answer(table, worker, pull.pushes)) return;
    log_.send({worker, kRowPriority,
               PulledRows{.table = pull.table, .request = pull.request, .rows = table.pull(pull.ids.bytes)}});
  });
}

void ServerTables::receive_rows(Job& job, std::size_t worker, const VisitRows& visit) {
  with_table(job.rows, visit.table, [&](RowTable& table) {
    if (!may_answer(table, worker, visit.pushes)) return;
    VisitedRows answer{.table = visit.table, .request = visit.request, .slabs = table.slabs()};
    if (visit.slab < table.slabs()) {
      answer.rows = table.rows_in(visit.slab);
      answer.slab = table.slab(visit.slab);
    }
    log_.send({worker, kRowPriority, std::move(answer)});
  });
}

void ServerTables::receive_rows(Job& job, std::size_t worker, const RowPush& push) {
  const std::uint32_t index = std::visit([](const auto& sent) { return sent.table; }, push);
  with_table(job.rows, index, [&](RowTable& table) { apply_push(job, index, table, worker, push); });
}

void ServerTables::apply_push(Job& job, std::uint32_t index, RowTable& table, std::size_t worker, const RowPush& push) {
  const auto before = table.marks().common();
  const RowTable::Taken taken = table.push(worker, push);
  if (taken == RowTable::Taken::early) return;
  if (taken == RowTable::Taken::applied) log_.append({.worker = worker, .change = widened<Change>(push)});
  if (table.marks().common() != before) return end_wait(job, index, table);
  if (table.marks().has_met(worker)) send_pushed(index, table, worker);
}

void ServerTables::send_pushed(std::uint32_t index, RowTable& table, std::size_t worker) {
  log_.send({worker, kRowPriority, PushedRows{.table = index, .number = table.marks().applied_of(worker)}});
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
void ServerTables::meet_rows(Job& job, std::size_t worker, const Hello& hello) {
  const Clock from = std::max(hello.step, job.setup.first_step);
  for (std::uint32_t index = 0; index < job.rows.size(); ++index)
    job.rows[index]->table.with([&](auto& table) {
      const auto before = table->marks().common();
      Change change = change::ComeBackRows{index};
      if (hello.is_new) change = change::JoinRows{index, from, hello.process, hello.meeting};
      repeat(*table, worker, change);
      log_.append({.worker = worker, .change = std::move(change)});
      if (table->marks().common() != before) end_wait(job, index, *table);
    });
}

void ServerTables::leave_rows(Job& job, std::size_t worker) {
  for (std::uint32_t index = 0; index < job.rows.size(); ++index)
    job.rows[index]->table.with([&](auto& table) {
      const auto before = table->marks().common();
      table->marks().leave(worker);
      log_.append({.worker = worker, .change = change::LeaveRows{index}});
      if (table->marks().common() != before) end_wait(job, index, *table);
    });
}

void ServerTables::transfer_rows(const Job& job, const Forward& to) {
  for (std::uint32_t index = 0; index < job.rows.size(); ++index)
    job.rows[index]->table.with([&](const auto& table) {
      table->image([&](Payload bytes, std::uint64_t part, bool is_last) {
        to({.sequence = log_.sequence(), .change = change::ImageOfRows{index, part, is_last, std::move(bytes)}});
      });
    });
}

void ServerTables::apply_to_rows(Job& job, std::uint32_t index, const Record& record) {
  if (index >= job.rows.size() || record.worker >= job.setup.workers)
    throw Corrupt(fmt::format("a record of table {} of rows, of {}, and worker {} of {}", index, job.rows.size(),
                              record.worker, job.setup.workers));
  Job::KeptRows& kept = *job.rows[index];
  const auto* const image = std::get_if<change::ImageOfRows>(&record.change);
  if (kept.is_missing && image == nullptr) return;  // the image to come includes it
  kept.table.with([&](auto& table) { repeat(*table, record.worker, record.change); });
  if (image != nullptr && image->is_last && kept.is_missing.exchange(false)) --job.missing;
}

}  // namespace syncopate::server
