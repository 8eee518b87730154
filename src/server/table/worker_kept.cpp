// A job's state between steps, as a worker restores and gathers it: weights, optimizer's state, residuals.
#include <algorithm>
#include <numeric>

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

std::vector<std::vector<std::byte>> WorkerTables::left_out() {
  std::vector<std::vector<std::byte>> all;
  for (const Table& table : tables_) {
    std::vector<std::byte>& bytes = all.emplace_back();
    for (const std::size_t i : in_order(table))
      table.blocks[i]->with([&](const WorkerBlock& block) {
        bytes.insert(bytes.end(), block.left_out().begin(), block.left_out().end());
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

void WorkerTables::restore(std::span<const std::vector<std::byte>> left_out, std::uint64_t packets) {
  const auto own = this->left_out();
  base::require(left_out.size() == own.size(), "residuals of {} tables; allowed: of all {}", left_out.size(),
                own.size());
  for (std::size_t t = 0; t < own.size(); ++t)
    base::require(left_out[t].size() == own[t].size(), "the residual of table '{}' has {} bytes instead of {}",
                  setup_.tables[t].name, left_out[t].size(), own[t].size());
  for (std::size_t t = 0; t < own.size(); ++t) {
    base::ConstBytes rest(left_out[t]);
    for (const std::size_t i : in_order(tables_[t]))
      tables_[t].blocks[i]->with([&](WorkerBlock& block) {
        const std::size_t length = block.left_out().size();
        block.restore(rest.first(length), packets);
        rest = rest.subspan(length);
      });
  }
}

}  // namespace syncopate::server
