// Your own storages: what a worker and a server keep, and how updates and weights enter it. One for each place:
//
//   worker: gradient -> clipped -> ... -> server: trimmed -> heavy -> rounded -> ... -> worker: smooth -> doubles
#include "syncopate/storage.hpp"

#include <algorithm>
#include <cmath>

#include "laws.hpp"
#include "workers.hpp"

using namespace syncopate;
using namespace syncopate::server;

using Values = std::span<const float>;
using Result = std::span<float>;

/// Transmit buffer: a step adds at most 10 to what a worker sends, in either direction.
Storages clipped(std::span<const double> /*numbers*/) {
  return {.accumulate = [](const BlockView&, Values update, Result accumulated) {
    for (std::size_t i = 0; i < update.size(); ++i) accumulated[i] += std::clamp(update[i], -10.0F, 10.0F);
  }};
}

/// Server storage: the mean of the workers' updates without the smallest and the largest one.
Storages trimmed(std::span<const double> /*numbers*/) {
  return {.combine = [](const BlockView&, std::span<const Values> updates, Result combined) {
    for (std::size_t i = 0; i < combined.size(); ++i) {
      std::vector<float> all;
      for (const Values& update : updates) all.push_back(update[i]);
      std::ranges::sort(all);
      if (all.size() > 2) all = {all.begin() + 1, all.end() - 1};
      double sum = 0;
      for (const float value : all) sum += static_cast<double>(value);
      combined[i] = static_cast<float>(sum / static_cast<double>(all.size()));
    }
  }};
}

/// Server storage: a server keeps a velocity, v = 0.5 v + u, and w = w - rate v.
Storages heavy(std::span<const double> /*numbers*/) {
  return {.apply =
              [](const BlockView&, Values combined, double rate, Result kept, Result weights) {
                for (std::size_t i = 0; i < weights.size(); ++i) {
                  kept[i] = 0.5F * kept[i] + combined[i];
                  weights[i] -= static_cast<float>(rate) * kept[i];
                }
              },
          .kept = 1};
}

/// Server storage: workers compute with weights that are rounded to 1/1024.
Storages rounded(std::span<const double> /*numbers*/) {
  return {.answer = [](const BlockView&, Values weights, Result shown) {
    for (std::size_t i = 0; i < weights.size(); ++i) shown[i] = std::round(weights[i] * 1024) / 1024;
  }};
}

/// Apply buffer: a worker goes half the way from its weights to those that arrive.
Storages smooth(std::span<const double> /*numbers*/) {
  return {.adopt = [](const BlockView&, Values arrived, Result weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = (weights[i] + arrived[i]) / 2;
  }};
}

/// Gradient and worker storage: the program's gradients and weights are doubles. A device's memory is copied from and
/// to here.
Storages doubles(std::span<const double> /*numbers*/) {
  return {
      .load = [](const Buffer& memory,
                 Result values) { std::copy_n(static_cast<const double*>(memory.data), memory.count, values.begin()); },
      .store = [](Values values,
                  const Buffer& memory) { std::ranges::copy(values, static_cast<double*>(memory.data)); }};
}

constexpr Storage kOwn[] = {{.name = "clipped", .storages = clipped},
                            {.name = "trimmed", .storages = trimmed},
                            {.name = "heavy", .storages = heavy},
                            {.name = "rounded", .storages = rounded},
                            {.name = "smooth", .storages = smooth}};
constexpr Storage kDoubles = {.name = "doubles", .storages = doubles};

int main() {
  for (const Storage& storage : kOwn) {
    if (!holds(check_storage(storage))) return 1;
    std::printf("%s\n", storage.name.data());
    if (train_on_workers({.catalogue = Catalogue::standard().with(storage), .storage = std::string(storage.name)}) != 0)
      return 1;
  }
  std::vector<std::vector<double>> memory;
  const auto in_doubles = [&](std::size_t elements) { return Buffer(std::span(memory.emplace_back(elements))); };
  if (!holds(check_storage(kDoubles, {.memory = in_doubles}))) return 1;
  return train_on_workers<double>({.catalogue = Catalogue::standard().with(kDoubles), .storage = "doubles"});
}
