// Decoded: the decoded forms of records that this rank holds, kept in memory within a budget of their own.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/guarded.hpp"

namespace syncopate::cache {

/// Any thread may use it. Nothing is evicted, so a form that `find` returns stays where it is.
class Decoded final {
 public:
  explicit Decoded(std::uint64_t budget) : state_(State{.free = budget, .has_room = budget > 0}) {}

  /// Empty if it is not kept.
  [[nodiscard]] base::ConstBytes find(std::uint32_t sample) const {
    return state_.with([&](const State& state) {
      const auto found = state.forms.find(sample);
      return found == state.forms.end() ? base::ConstBytes{} : base::ConstBytes(found->second);
    });
  }
  /// Whether another form may fit: until the first one that did not.
  [[nodiscard]] bool has_room() const {
    return state_.with([](const State& state) { return state.has_room; });
  }
  /// Keeps a form if there is room; one that is kept already does not change.
  void keep(std::uint32_t sample, std::vector<std::byte> form) {
    state_.with([&](State& state) {
      if (form.empty() || state.forms.contains(sample)) return;
      if (form.size() > state.free) {
        state.has_room = false;
        return;
      }
      state.free -= form.size();
      form.shrink_to_fit();
      state.forms.emplace(sample, std::move(form));
      state.fresh.push_back(sample);
    });
  }
  /// The records whose forms were kept since the last call.
  [[nodiscard]] std::vector<std::uint32_t> fresh() {
    return state_.with([](State& state) { return std::exchange(state.fresh, {}); });
  }

 private:
  struct State {
    std::uint64_t free = 0;
    bool has_room = false;
    std::unordered_map<std::uint32_t, std::vector<std::byte>> forms;
    std::vector<std::uint32_t> fresh;
  };
  base::Guarded<State> state_;
};

}  // namespace syncopate::cache
