// A server's tables and their replica: changes become records, and records repeat the changes.
#include <mutex>

#include "base/require.hpp"
#include "optim/norms.hpp"
#include "server/table/server_job.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

void repeat(ServerBlock& block, std::size_t worker, const Change& change, double now_s) {
  std::visit(OneOf{[&](const change::Image& image) { block.restore(image.image.bytes); },
                   [&](const FirstValues& first) { block.initialise(first.values.bytes, first.part); },
                   [&](const Push& push) { block.receive(worker, push, now_s); },
                   [&](const change::Leave&) { block.leave(worker); },
                   [&](const change::ComeBack&) { block.come_back(worker); },
                   [&](const change::Join& join) { block.join(worker, join.from, join.process); },
                   [&](const change::Show&) { block.show(); },
                   [&](const change::FinishStep& finish) { block.finish_step(finish.step, finish.trust); },
                   [](const auto& /*of rows*/) {}},
             change);
}

}  // namespace

/// Called with the block's lock held. A refused change makes no record.
void ServerTables::change(std::size_t index, ServerBlock& block, std::size_t worker, Change change) {
  repeat(block, worker, change, now_s());
  if (image_every_ > 0) take_image(index, block);
  log_.append({.worker = worker, .change = std::move(change)});
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
        change(indices[i], *blocks[i], 0,
               change::FinishStep{.block = static_cast<std::uint32_t>(indices[i]), .step = step, .trust = trust});
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) answer(job, indices[i], *blocks[i]);
  });
}

void ServerTables::step_jointly(Job& job) {
  for (const auto& [table, blocks] : job.joint) step_jointly(job, table);
}

void ServerTables::transfer(const Job& job, const Log::Forward& to) {
  to({.sequence = log_.sequence(),
      .change = change::SetUp{.origin = job.origin, .setup = payload_of(job.setup.bytes())}});
  for (const auto& kept : job.blocks)
    kept->kept.with([&](const ServerBlock& block) {
      to({.sequence = log_.sequence(), .change = change::Image{.block = kept->block.index, .image = block.image()}});
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

void ServerTables::begin_replica(const change::SetUp& from) {
  const auto made = create(Setup::of(text_of(from.setup), catalogue_));
  made->origin = from.origin;
  made->missing = made->blocks.size() + made->rows.size();
  for (const auto& kept : made->blocks) kept->is_missing = true;
  for (const auto& kept : made->rows) kept->is_missing = true;
  job_.with([&](auto& job) { job = made; });
}

std::uint64_t ServerTables::apply(const Record& record) {
  const auto* const set_up = std::get_if<change::SetUp>(&record.change);
  if (set_up != nullptr) begin_replica(*set_up);
  const auto job = this->job();
  if (!job) return 0;
  const std::uint64_t last = log_.sequence();
  const bool is_change = !is_transferred(record.change);
  if (is_change && record.sequence > last + 1)
    throw Corrupt(fmt::format("record {} comes after record {}", record.sequence, last));
  const bool is_late = is_change && record.sequence <= last;
  if (set_up == nullptr && !is_late) apply_to(*job, record);
  log_.continue_from(record.sequence);  // a refused record does not count
  return job->missing == 0 ? log_.sequence() : 0;
}

void ServerTables::apply_to(Job& job, const Record& record) {
  std::visit(
      [&](const auto& change) {
        if constexpr (requires { change.block; }) apply_to_block(job, change.block, record);
        if constexpr (requires { change.table; }) apply_to_rows(job, change.table, record);
      },
      record.change);
}

void ServerTables::apply_to_block(Job& job, std::uint32_t index, const Record& record) {
  if (index >= job.blocks.size() || record.worker >= job.setup.workers)
    throw Corrupt(fmt::format("a record of block {} of {} and worker {} of {}", index, job.blocks.size(), record.worker,
                              job.setup.workers));
  Job::Kept& kept = *job.blocks[index];
  const bool is_image = std::holds_alternative<change::Image>(record.change);
  if (kept.is_missing && !is_image) return;  // the image to come includes it
  kept.kept.with([&](ServerBlock& block) { repeat(block, record.worker, record.change, now_s()); });
  if (is_image && kept.is_missing.exchange(false)) --job.missing;
}

}  // namespace syncopate::server
