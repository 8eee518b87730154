// Your own consistency models at the other places where a model can decide:
//
//   large:S     the larger half of an update travels early, the rest when another worker requires it   (part)
//   pushed:S    servers send weights without a request when a worker is behind                  (sends_unasked)
//   together:S  a worker sends its updates early while another one is behind                      (sees_clocks)
#include <algorithm>
#include <cmath>
#include <vector>

#include "laws.hpp"
#include "syncopate/consistency.hpp"
#include "workers.hpp"

using namespace syncopate;
using namespace syncopate::server;

Rule large(std::span<const double> numbers) {
  return {.staleness = static_cast<Clock>(numbers[0]),
          .travels_early = [](const ClockView&) { return true; },
          .part =
              [](const ClockView&, std::span<const float>, std::span<const float> update, std::span<float> sent) {
                std::vector<float> sizes;
                for (const float value : update) sizes.push_back(std::abs(value));
                const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
                std::ranges::nth_element(sizes, middle);
                for (std::size_t i = 0; i < update.size(); ++i) sent[i] = std::abs(update[i]) < *middle ? 0 : update[i];
              }};
}

Rule pushed(std::span<const double> numbers) {
  return {.staleness = static_cast<Clock>(numbers[0]), .sends_unasked = [](const ServerView& view) {
            return view.clocks[view.worker] < std::ranges::max(view.clocks);
          }};
}

Rule together(std::span<const double> numbers) {
  return {
      .staleness = static_cast<Clock>(numbers[0]),
      .travels_early =
          [](const ClockView& view) { return !view.clocks.empty() && std::ranges::min(view.clocks) + 1 < view.own; },
      .sees_clocks = true};
}

constexpr Parameter kStaleness[] = {{.name = "staleness", .most = 1e6, .whole = true, .or_zero = true}};
constexpr Consistency kModels[] = {{.name = "large", .parameter = "3", .parameters = kStaleness, .rule = large},
                                   {.name = "pushed", .parameter = "3", .parameters = kStaleness, .rule = pushed},
                                   {.name = "together", .parameter = "3", .parameters = kStaleness, .rule = together}};

int main() {
  for (const Consistency& model : kModels) {
    if (!holds(check_consistency(model, {.bound = 3}))) return 1;
    if (train_on_workers({.catalogue = Catalogue::standard().with(model), .consistency = std::string(model.name)}) != 0)
      return 1;
  }
}
