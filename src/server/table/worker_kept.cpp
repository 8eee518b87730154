// A job's state between steps, as a worker restores and gathers it: weights, optimizer's state, residuals.
#include <algorithm>
#include <numeric>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "base/require.hpp"
#include "server/table/worker_tables.hpp"

namespace syncopate::server {

void WorkerTables::begin_with(KeptTables earlier) {
  if (!earlier.weights.empty()) {
    base::require(earlier.weights.size() == elements(), "{} weights were saved; allowed: the tables' {}",
                  earlier.weights.size(), elements());
    for (Table& table : tables_)
      if (!table.copy.empty())
        std::copy_n(earlier.weights.begin() + static_cast<std::ptrdiff_t>(table.begin), table.copy.size(),
                    table.copy.begin());
  }
  auto& [step, weights, optimizer, state] = earlier;
  if (state.empty()) return;
  std::vector<OptimizerState> saved;
  for (auto& [name, values] : state) saved.push_back({name, values});
  if (optimizer_) return optimizer_->restore(optimizer, saved);
  base::require(optimizer == setup_.optimizer, "the saved state is of optimizer {}, this one is {}", optimizer,
                setup_.optimizer);
  base::require(state.size() == rules_.optimizer.state.size(), "optimizer {} keeps {} vectors, {} were saved",
                optimizer, rules_.optimizer.state.size(), state.size());
  for (std::size_t s = 0; s < state.size(); ++s) {
    auto& [name, values] = state[s];
    base::require(name == rules_.optimizer.state[s] && values.size() == elements(),
                  "the saved state {} is '{}' of {} elements; allowed: '{}' of {}", s, name, values.size(),
                  rules_.optimizer.state[s], elements());
    first_state_.push_back(std::move(values));
  }
}

void WorkerTables::gather(std::span<const std::span<float>> parts) {
  for (const Table& table : tables_)
    for (std::size_t i = 0; i < table.blocks.size(); ++i) {
      const Range& place = table.places[i].elements;
      std::vector<std::span<float>> own;
      for (const auto& part : parts) own.push_back(part.subspan(table.begin + place.begin, place.size()));
      table.blocks[i]->with([&](WorkerBlock& block) { block.gather(std::move(own)); });
    }
}

bool WorkerTables::has_gathered() {
  bool all = rows_.is_acknowledged();
  for (const Table& table : tables_)
    for (std::size_t i = 0; i < table.blocks.size(); ++i)
      send_due(table.places[i], table.blocks[i]->with([&](WorkerBlock& block) {
        all = all && block.has_gathered();
        return block.gathering_request();
      }));
  return all;
}

Clock WorkerTables::gathered_at() {
  Clock at = tables_.empty() ? own_ : 0;
  for (const Table& table : tables_)
    for (const auto& shared : table.blocks)
      at = std::max(at, shared->with([](const WorkerBlock& block) { return block.gathered_at(); }));
  return at;
}

std::vector<std::pair<std::string, std::vector<float>>> WorkerTables::optimizer_state() {
  std::vector<std::pair<std::string, std::vector<float>>> state;
  if (optimizer_)
    for (const auto& [name, values] : optimizer_->state())
      state.emplace_back(name, std::vector(values.begin(), values.end()));
  else
    for (const std::string_view name : rules_.optimizer.state) state.emplace_back(name, std::vector<float>(elements()));
  return state;
}

/// Blocks leave in turns, so that they are not in the order of their elements.
std::vector<std::size_t> WorkerTables::in_order(const Table& table) const {
  std::vector<std::size_t> order(table.places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return table.places[i].elements.begin; });
  return order;
}

WorkerTables::StateLayout WorkerTables::layout_of(const Table& table) const {
  StateLayout layout;
  std::size_t own = 0;
  for (const std::size_t i : in_order(table)) {
    const Range elements = table.places[i].elements;
    const auto [first, bytes] = table.blocks[i]->with(
        [](const WorkerBlock& block) { return std::pair(block.own_state_bytes(), block.left_out().size()); });
    layout.cut = base::mixed(layout.cut ^ elements.begin);
    layout.parts.push_back({.block = i, .in_block = {0, first}, .at = own, .is_own = true});
    own += first;
    std::size_t vector = 0;
    for (std::size_t at = first; at < bytes; at += elements.size() * sizeof(float), ++vector)
      layout.parts.push_back({.block = i,
                              .in_block = {at, at + elements.size() * sizeof(float)},
                              .at = vector * table.weights.size_bytes() + elements.begin * sizeof(float)});
    layout.vector_bytes = std::max(layout.vector_bytes, vector * table.weights.size_bytes());
  }
  for (StatePart& part : layout.parts)
    if (part.is_own) part.at += layout.vector_bytes + sizeof layout.cut;
  layout.bytes = layout.vector_bytes + (own > 0 ? sizeof layout.cut + own : 0);
  return layout;
}

std::vector<std::vector<std::byte>> WorkerTables::left_out() {
  std::vector<std::vector<std::byte>> all;
  for (const Table& table : tables_) {
    const StateLayout layout = layout_of(table);
    std::vector<std::byte>& bytes = all.emplace_back(layout.bytes);
    if (layout.bytes > layout.vector_bytes) base::put(bytes, layout.vector_bytes, layout.cut);
    for (const StatePart& part : layout.parts)
      table.blocks[part.block]->with([&](const WorkerBlock& block) {
        std::ranges::copy(block.left_out().subspan(part.in_block.begin, part.in_block.size()),
                          bytes.begin() + static_cast<std::ptrdiff_t>(part.at));
      });
  }
  return all;
}

std::uint64_t WorkerTables::packets() {
  std::uint64_t most = 0;
  for (const Table& table : tables_)
    for (const auto& shared : table.blocks)
      most = std::max(most, shared->with([](const WorkerBlock& block) { return block.packets(); }));
  return most;
}

/// Whether a block is coded depends on its length. So after another cut a table may have coded blocks for the first
/// time, which begin with zero, or none, which leave nothing out.
void WorkerTables::restore(std::span<const std::vector<std::byte>> left_out, std::uint64_t packets) {
  base::require(left_out.size() == tables_.size(), "residuals of {} tables; allowed: of all {}", left_out.size(),
                tables_.size());
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const StateLayout layout = layout_of(tables_[t]);
    if (compress::has_state(rules_.codec) && (left_out[t].empty() || layout.bytes == 0)) continue;
    const bool has_own = layout.bytes > layout.vector_bytes;
    base::require(has_own ? left_out[t].size() >= layout.vector_bytes : left_out[t].size() == layout.bytes,
                  "the residual of table '{}' has {} bytes instead of {}", setup_.tables[t].name, left_out[t].size(),
                  layout.bytes);
  }
  for (std::size_t t = 0; t < tables_.size(); ++t) restore(tables_[t], left_out[t], packets);
}

void WorkerTables::restore(const Table& table, base::ConstBytes saved, std::uint64_t packets) const {
  const StateLayout layout = layout_of(table);
  const bool is_same_cut = saved.size() == layout.bytes && layout.bytes > layout.vector_bytes &&
                           base::get<std::uint64_t>(saved, layout.vector_bytes) == layout.cut;
  std::vector<std::vector<std::byte>> states(table.blocks.size());
  for (const StatePart& part : layout.parts) {
    std::vector<std::byte>& state = states[part.block];
    state.resize(std::max(state.size(), part.in_block.end));
    if (saved.empty() || (part.is_own && !is_same_cut)) continue;
    std::ranges::copy(saved.subspan(part.at, part.in_block.size()),
                      state.begin() + static_cast<std::ptrdiff_t>(part.in_block.begin));
  }
  for (std::size_t i = 0; i < states.size(); ++i)
    table.blocks[i]->with([&](WorkerBlock& block) { block.restore(states[i], packets); });
}

}  // namespace syncopate::server
