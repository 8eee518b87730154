// A worker's tables: updates become requests to servers, and answers the weights of the next step.
#include "server/table/worker_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <ranges>

#include "base/require.hpp"
#include "kernel/cast.hpp"
#include "kernel/norm.hpp"
#include "kernel/reduce.hpp"

namespace syncopate::server {

namespace {

std::span<float> floats(const Buffer& buffer) { return {static_cast<float*>(buffer.data), buffer.count}; }

void require_fit(const Setup& setup, const Storages& storages, std::span<const Buffer> weights) {
  base::require(weights.size() == setup.tables.size(), "weights of {} tables; allowed: of all {}", weights.size(),
                setup.tables.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TableShape& table = setup.tables[i];
    base::require(table.elements > 0, "table '{}' has no weights; allowed: at least 1", table.name);
    require_type(storages, "weights", table.name, weights[i].dtype);
    base::require(weights[i].count == table.elements, "table '{}' has {} weights; allowed: {}", table.name,
                  weights[i].count, table.elements);
  }
}

/// The order in which a worker sends the blocks of a table: to each server in turn. Workers begin with different
/// servers, so that all ports are busy from the first block to the last.
std::vector<Block> in_turns(std::vector<Block> blocks, std::size_t servers, std::size_t worker) {
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> sent;  // sent so far, by table and server
  std::map<std::array<std::size_t, 3>, Block> turns;
  for (const Block& block : blocks) {
    const std::size_t place = (block.server + servers - worker % servers) % servers;
    turns[{block.table, sent[{block.table, block.server}]++, place}] = block;
  }
  std::ranges::copy(turns | std::views::values, blocks.begin());
  return blocks;
}

std::unique_ptr<Optimizer> optimizer_of(const Setup& setup, std::span<const Buffer> weights) {
  std::vector<WeightTensor> tensors;
  for (std::size_t i = 0; i < weights.size(); ++i)
    tensors.push_back({setup.tables[i].name, weights[i], setup.tables[i].spared});
  return std::make_unique<Optimizer>(std::move(tensors), OptimizerOptions{.rule = setup.optimizer,
                                                                          .hyperparameters = setup.hyperparameters,
                                                                          .catalogue = setup.catalogue});
}

}  // namespace

void Entry::correct_by(const Welcome& welcome) {
  step = std::max({step, welcome.least, welcome.last});
  meeting = std::max(meeting, welcome.meeting);
}

WorkerTables::WorkerTables(const Setup& setup, std::size_t worker, std::vector<Buffer> weights, Send send)
    : WorkerTables(setup, worker, std::move(weights), {}, std::move(send)) {}

WorkerTables::WorkerTables(const Setup& setup, std::size_t worker, NoValues no_values, Send send)
    : WorkerTables(setup, worker, std::vector<Buffer>(setup.tables.size()), no_values, std::move(send)) {}

WorkerTables::WorkerTables(const Setup& setup, std::size_t worker, std::vector<Buffer> weights,
                           std::optional<NoValues> no_values, Send send)
    : setup_(setup),
      rules_(setup_, no_values),
      send_(std::move(send)),
      rows_(setup_, send_, rules_.in_lockstep()),
      by_server_(setup.servers) {
  if (!no_values) require_fit(setup_, rules_.storages, weights);
  for (Buffer& buffer : weights) {
    Table& table = tables_.emplace_back(Table{
        .memory = buffer, .copy = {}, .weights = floats(buffer), .begin = elements(), .blocks = {}, .places = {}});
    if (is_f32_here(buffer)) continue;
    table.copy.resize(buffer.count);
    table.weights = table.copy;
    load(buffer, table.weights);
    buffer = Buffer(table.weights);  // what the optimizer updates
  }
  for (const Block& place : in_turns(kept_blocks_of(setup_, rules_), setup_.servers, worker)) {
    Table& table = tables_[place.table];
    if (table.blocks.empty()) table.first_turn = by_turn_.size();
    const auto part = table.weights.subspan(place.elements.begin, place.elements.size());
    table.blocks.push_back(std::make_unique<Shared>(WorkerBlock(rules_, place, part, worker)));
    table.places.push_back(place);
    auto& at_server = by_server_[place.server];
    at_server.resize(std::max<std::size_t>(at_server.size(), place.index + 1));
    at_server[place.index] = {table.blocks.back().get(), by_turn_.size()};
    by_turn_.push_back(table.blocks.back().get());
  }
  if (rules_.in_lockstep() || no_values || tables_.empty()) return;
  optimizer_ = optimizer_of(setup_, weights);
  std::size_t longest = 0;
  for (const Table& table : tables_) longest = std::max(longest, table.weights.size());
  before_.resize(longest);
  change_.resize(longest);
  if (rules_.masks_velocity) mask_velocities();
}

/// The optimizer allocates its state once.
void WorkerTables::mask_velocities() {
  const std::span<float> velocity = optimizer_->state().front().values;
  for (Table& table : tables_)
    for (std::size_t i = 0; i < table.blocks.size(); ++i) {
      const Block& place = table.places[i];
      if (!place.is_coded) continue;
      table.blocks[i]->with([&](WorkerBlock& block) {
        block.mask(velocity.subspan(table.begin + place.elements.begin, place.elements.size()));
      });
    }
}

WorkerTables::~WorkerTables() = default;

template <class F>
void WorkerTables::each_block(F&& f) {
  for (Table& table : tables_)
    for (std::size_t i = 0; i < table.blocks.size(); ++i) f(table.places[i], *table.blocks[i]);
}

void WorkerTables::send_due(const Block& place, const std::optional<BlockRequest>& request) const {
  if (request) send_({place.server, rules_.priority_of(place.table), widened<WorkerMessage>(*request)});
}

void WorkerTables::offer(const Block& place) const {
  const Table& table = tables_[place.table];
  for (std::size_t s = 0; s < first_state_.size(); ++s)
    offer(place, std::span(first_state_[s]).subspan(table.begin + place.elements.begin, place.elements.size()), 1 + s);
  offer(place, table.weights.subspan(place.elements.begin, place.elements.size()), 0);
}

void WorkerTables::offer(const Block& place, std::span<const float> values, std::uint64_t part) const {
  send_({place.server, 0, FirstValues{.block = place.index, .part = part, .values = copy_of(values)}});
}

void WorkerTables::offer() {
  offers_ = true;
  each_block([&](const Block& place, Shared&) { offer(place); });
}

/// Marks the step as if the worker had ended it: the others may still be at it, and its image must lack the pushes that
/// this worker makes from then on.
void WorkerTables::begin(const Entry& entry) {
  own_ = entry.step;
  rows_.begin(entry.step, entry.meeting);
  each_block([&](const Block& place, Shared& shared) {
    send_due(place, shared.with([&](WorkerBlock& block) { return block.first_request(entry.step); }));
  });
}

bool WorkerTables::is_f32_here(const Buffer& memory) const noexcept {
  return memory.dtype == DType::f32 && !rules_.storages.load;
}

void WorkerTables::load(const Buffer& memory, std::span<float> values) const {
  if (rules_.storages.load) return rules_.storages.load(memory, values);
  kernel::cast({memory.dtype, DType::f32}, memory.bytes().data(), std::as_writable_bytes(values).data(), memory.count);
}

void WorkerTables::store(std::span<const float> values, const Buffer& memory) const {
  if (rules_.storages.store) return rules_.storages.store(values, memory);
  kernel::cast({DType::f32, memory.dtype}, std::as_bytes(values).data(), memory.bytes().data(), memory.count);
}

void WorkerTables::update(std::size_t index, const Buffer& gradient, const UpdateStep& at) {
  if (is_f32_here(gradient)) return update(index, floats(gradient), at);
  base::require(index < tables_.size(), "table {} of {}", index, tables_.size());
  require_type(rules_.storages, "a gradient", setup_.tables[index].name, gradient.dtype);
  gradient_.resize(std::max(gradient_.size(), gradient.count));
  const std::span<float> values = std::span(gradient_).first(gradient.count);
  load(gradient, values);
  update(index, values, at);
  store(values, gradient);  // they are zero now
}

void WorkerTables::update(std::size_t index, std::span<float> gradient, const UpdateStep& at) {
  base::require(index < tables_.size(), "table {} of {}", index, tables_.size());
  Table& table = tables_[index];
  base::require(gradient.size() == table.weights.size(), "the gradient of table '{}' has {} elements instead of {}",
                setup_.tables[index].name, gradient.size(), table.weights.size());
  base::require(!table.is_updated,
                "table '{}' is updated a second time in step {}; allowed: once between two calls of "
                "clock",
                setup_.tables[index].name, own_);
  if (rules_.local_clip > 0 && std::ranges::any_of(table.places, &Block::is_coded)) clip(gradient);
  std::span<float> update = gradient;
  if (optimizer_) {
    add_change(table, index, gradient, at);
    update = {change_.data(), gradient.size()};
  }
  end_step(table, at.rate, [&](WorkerBlock& block) {
    const Range& part = block.block().elements;
    block.add(update.subspan(part.begin, part.size()));
    std::ranges::fill(gradient.subspan(part.begin, part.size()), 0.0F);
  });
  if (optimizer_ && !table.copy.empty()) store(table.copy, table.memory);
  table.is_updated = true;
}

/// Compensated (compress) clips gradients of ranks in the same way.
void WorkerTables::clip(std::span<float> gradient) const {
  const auto bytes = std::as_writable_bytes(gradient);
  const double norm = std::sqrt(kernel::squared_norm(DType::f32, bytes.data(), gradient.size()));
  if (norm > rules_.local_clip)
    kernel::scale(DType::f32, bytes.data(), gradient.size(), static_cast<float>(rules_.local_clip / norm));
}

/// The rule receives only this worker's gradient, as if it were the average; an N-th of the change is this worker's
/// share. N such shares of a rule that is linear in the gradient add up to its change for the average.
void WorkerTables::add_change(Table& table, std::size_t index, std::span<float> gradient, const UpdateStep& at) {
  const std::span<float> weights = table.weights;
  std::ranges::copy(weights, before_.begin());
  optimizer_->update(index, gradient, at);
  const float share = 1.0F / static_cast<float>(setup_.workers);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    change_[i] = (weights[i] - before_[i]) * share;
    weights[i] = before_[i] + change_[i];
  }
}

/// Each block sends what is due as soon as it is copied; in flow traditional `demand` sends it, after the last table.
template <class F>
void WorkerTables::end_step(const Table& table, double rate, F&& add) {
  const bool waits = rules_.flow == Flow::traditional;
  for (std::size_t i = 0; i < table.blocks.size(); ++i) {
    send_due(table.places[i], table.blocks[i]->with([&](WorkerBlock& block) {
      add(block);
      block.end_step(rate);
      return waits ? std::nullopt : block.request();
    }));
    if (waits) note_change(table.first_turn + i);
  }
}

void WorkerTables::end_step(const UpdateStep& at) {
  for (Table& table : tables_) {
    if (!table.is_updated) end_step(table, at.rate, [](WorkerBlock&) {});
    table.is_updated = false;
  }
  if (rules_.flow == Flow::traditional) demand();
  ++own_;
  first_state_.clear();
  rows_.end_steps(own_);
}

bool WorkerTables::is_fresh(const Table& table) {
  return std::ranges::all_of(table.blocks, [](const auto& shared) {
    return shared->with([](const WorkerBlock& block) { return block.may_compute(); });
  });
}

/// A table that the current step has updated is asked for the next one.
bool WorkerTables::may_read(std::size_t table) {
  if (rules_.flow != Flow::traditional || tables_[table].is_updated) return is_fresh(tables_[table]);
  if (all_fresh_at_ != own_ &&
      std::ranges::all_of(tables_, [](const Table& each) { return each.is_updated || is_fresh(each); }))
    all_fresh_at_ = own_;
  return all_fresh_at_ == own_;
}

/// Other blocks have sent what was due when `update` added to them.
void WorkerTables::demand() {
  const Changed changed = changed_.with([](Changed& all) { return std::exchange(all, {}); });
  for (const std::size_t turn : changed) {
    const auto [place, message] =
        by_turn_[turn]->with([](WorkerBlock& block) { return std::pair(block.block(), block.request()); });
    send_due(place, message);
  }
}

void WorkerTables::note_change(std::size_t turn) {
  changed_.with([&](Changed& all) { all.insert(turn); });
}

void WorkerTables::read(std::size_t table) {
  Clock stalest = 0;
  bool has_changed = false;
  for (const auto& shared : tables_[table].blocks)
    shared->with([&](WorkerBlock& block) {
      has_changed = block.settle() || has_changed;
      stalest = std::max(stalest, block.staleness());
    });
  if (has_changed && !tables_[table].copy.empty()) store(tables_[table].copy, tables_[table].memory);
  most_stale_ = std::max(most_stale_, stalest);
  stale_ += stalest;
  ++reads_;
}

Staleness WorkerTables::staleness() const noexcept {
  return {most_stale_, reads_ == 0 ? 0 : static_cast<double>(stale_) / static_cast<double>(reads_)};
}

bool WorkerTables::finish() {
  bool all = rows_.is_acknowledged();
  each_block([&](const Block& place, Shared& shared) {
    send_due(place, shared.with([&](WorkerBlock& block) {
      all = all && block.is_finished();
      return block.last_request();
    }));
  });
  return all;
}

void WorkerTables::receive(std::size_t server, ServerMessage message) {
  std::visit(OneOf{[&](Weights& answer) { apply(server, std::move(answer)); },
                   [&](const Want& want) { apply(server, want); }, [&](const Clocks& clocks) { apply(server, clocks); },
                   [&](const Refuse&) { throw Corrupt("a refusal within a job"); },
                   [&](const StatusReport&) { throw Corrupt("a status within a job"); },
                   [&](const auto& of_rows) { rows_.receive(server, of_rows); }},
             message);
}

void WorkerTables::apply(std::size_t server, const Want& want) {
  for (const auto& [shared, turn] : by_server_.at(server)) {
    shared->with([&](WorkerBlock& block) { block.want(want.least); });
    note_change(turn);
  }
}

const WorkerTables::Place& WorkerTables::place_of(std::size_t server, std::uint32_t block) const {
  const auto& blocks = by_server_.at(server);
  if (block >= blocks.size())
    throw Corrupt(fmt::format("server {} sent weights of block {} of {}", server, block, blocks.size()));
  return blocks[block];
}

void WorkerTables::apply(std::size_t server, const Clocks& clocks) {
  if (clocks.clocks.bytes.size() != setup_.workers * sizeof(std::uint64_t))
    throw Corrupt(fmt::format("server {} sent {} bytes of clocks of {} workers", server, clocks.clocks.bytes.size(),
                              setup_.workers));
  std::vector<Clock> all(setup_.workers);
  for (std::size_t worker = 0; worker < all.size(); ++worker)
    all[worker] = static_cast<Clock>(base::get<std::uint64_t>(clocks.clocks.bytes, worker * sizeof(std::uint64_t)));
  place_of(server, clocks.block).block->with([&](WorkerBlock& block) { block.note(std::move(all)); });
}

void WorkerTables::apply(std::size_t server, Weights answer) {
  const auto& [shared, turn] = place_of(server, answer.block);
  if (answer.is_unasked) send_({server, 0, Seen{answer.block}});
  shared->with([&](WorkerBlock& block) { block.receive(std::move(answer)); });
  note_change(turn);
}

void WorkerTables::repeat(std::size_t server) {
  rows_.repeat(server);
  for (const auto& [shared, turn] : by_server_.at(server))
    shared->with([&](const WorkerBlock& block) {
      if (offers_ && !block.has_weights()) offer(block.block());
      send_due(block.block(), block.under_way());
    });
}

void WorkerTables::catch_up(Clock least) {
  if (least <= own_) return;
  each_block([&](const Block&, Shared& shared) { shared.with([&](WorkerBlock& block) { block.skip_to(least); }); });
  for (std::size_t turn = 0; turn < by_turn_.size(); ++turn) note_change(turn);
  own_ = least;
  rows_.end_steps(own_);
}

}  // namespace syncopate::server
