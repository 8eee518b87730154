// A server's tables and their replica: changes become records, and records repeat the changes.
#include <mutex>

#include "base/require.hpp"
#include "optim/norms.hpp"
#include "server/table/server_job.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

void repeat(ServerBlock& block, const Record& record, double now_s) {
  switch (record.event) {
    case Event::initial:
      return block.initialise(record.message.body.bytes, record.message.version);
    case Event::push:
      return block.take(record.worker, record.message, now_s);
    case Event::leave:
      return block.leave(record.worker);
    case Event::come_back:
      return block.come_back(record.worker);
    case Event::join:
      return block.join(record.worker, record.message.first, record.message.version);
    case Event::show:
      return block.show();
    case Event::image:
      return block.restore(record.message.body.bytes);
    case Event::step:
      return block.finish_step(record.message.first, record.message.rate);
    case Event::setup:
    case Event::image_of_rows:
    case Event::push_rows:
    case Event::join_rows:
    case Event::leave_rows:
    case Event::come_back_rows:
      break;
  }
}

}  // namespace

/// Called with the block's lock held. A refused change makes no record.
void ServerTables::change(std::size_t index, ServerBlock& block, Record record) {
  repeat(block, record, now_s());
  if (image_every_ > 0) take_image(index, block);
  record.message.block = static_cast<std::uint32_t>(index);
  log_.append(std::move(record));
}

namespace {

template <class Blocks, class F>
void with_all(Blocks& blocks, std::span<const std::size_t> indices, std::vector<ServerBlock*>& locked, const F& f) {
  if (indices.empty()) return f();
  blocks[indices.front()]->kept.with([&](ServerBlock& block) {
    locked.push_back(&block);
    with_all(blocks, indices.subspan(1), locked, f);
  });
}

}  // namespace

/// Holds the locks of all blocks, in their order, and no other one. The trust ratio is part of the records, so that a
/// replica repeats the step of each block by itself.
void ServerTables::step_jointly(Job& job, std::size_t table) {
  const std::span<const std::size_t> indices = job.joint.at(table);
  std::vector<ServerBlock*> blocks;
  with_all(job.blocks, indices, blocks, [&] {
    while (std::ranges::all_of(blocks, [](const ServerBlock* block) { return block->is_complete(); })) {
      Clock step = kMostClock;
      for (const ServerBlock* block : blocks) step = std::min(step, block->next_step());
      std::vector<optim::Squares> squares;
      for (ServerBlock* block : blocks) block->skip_to(step);
      for (ServerBlock* block : blocks) std::ranges::copy(block->prepare_step(), std::back_inserter(squares));
      const double trust = optim::trust_of(job.rules.optimizer, job.rules.with, optim::norms_of(squares));
      for (std::size_t i = 0; i < blocks.size(); ++i)
        change(indices[i], *blocks[i], {.event = Event::step, .message = {.first = step, .rate = trust}});
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) answer(job, indices[i], *blocks[i]);
  });
}

void ServerTables::step_jointly(Job& job) {
  for (const auto& [table, blocks] : job.joint) step_jointly(job, table);
}

void ServerTables::transfer(const Job& job, const Log::Forward& to) {
  to({.sequence = log_.sequence(),
      .event = Event::setup,
      .message = {.version = job.origin, .body = payload_of(job.setup.bytes())}});
  for (const auto& kept : job.blocks)
    kept->kept.with([&](const ServerBlock& block) {
      to({.sequence = log_.sequence(),
          .event = Event::image,
          .message = {.block = kept->block.index, .body = block.image()}});
    });
  transfer_rows(job, to);
}

/// One at a time, and one for each stream: a second transfer would discard the replica's state.
void ServerTables::begin_transfer(const Job& job) {
  const base::Lock lock(transferring_);
  if (!log_.awaits_transfer()) return;
  transfer(job, [this](Record record) { log_.append(std::move(record)); });
}

void ServerTables::follow(std::uint64_t has) {
  if (log_.resume(has)) return;
  if (const auto job = this->job()) begin_transfer(*job);
}

bool ServerTables::is_empty() const {
  const auto job = this->job();
  return !job || job->missing > 0;
}

bool ServerTables::hand_over(const Forward& to) {
  const auto job = this->job();
  if (job && job->missing > 0) return false;
  if (job) transfer(*job, to);
  return true;
}

std::uint64_t ServerTables::apply(const Record& record) {
  const Message& message = record.message;
  if (record.event == Event::setup) {
    const auto made = create(Setup::of(text_of(message.body), catalogue_));
    made->origin = message.version;
    made->missing = made->blocks.size() + made->rows.size();
    for (const auto& kept : made->blocks) kept->is_missing = true;
    for (const auto& kept : made->rows) kept->is_missing = true;
    job_.with([&](auto& job) { job = made; });
  }
  const auto job = this->job();
  if (!job) return 0;
  const std::uint64_t last = log_.sequence();
  const bool is_change = !is_transferred(record.event);
  if (is_change && record.sequence > last + 1)
    throw Corrupt(fmt::format("record {} comes after record {}", record.sequence, last));
  const bool is_late = is_change && record.sequence <= last;
  if (record.event != Event::setup && !is_late) apply_to(*job, record);
  log_.continue_from(record.sequence);  // a refused record does not count
  return job->missing == 0 ? log_.sequence() : 0;
}

void ServerTables::apply_to(Job& job, const Record& record) {
  if (record.event >= Event::image_of_rows) return apply_to_rows(job, record);
  if (record.message.block >= job.blocks.size() || record.worker >= job.setup.workers)
    throw Corrupt(fmt::format("a record of block {} of {} and worker {} of {}", record.message.block, job.blocks.size(),
                              record.worker, job.setup.workers));
  Job::Kept& kept = *job.blocks[record.message.block];
  if (kept.is_missing && record.event != Event::image) return;  // the image to come includes it
  kept.kept.with([&](ServerBlock& block) { repeat(block, record, now_s()); });
  if (record.event == Event::image && kept.is_missing.exchange(false)) --job.missing;
}

}  // namespace syncopate::server
