// Ranks as threads: what nearly every test of several ranks needs.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "syncopate/group.hpp"

namespace syncopate::test {

/// Runs `body(rank)` on a thread per rank and returns each rank's exception (null: none).
inline std::vector<std::exception_ptr> outcomes(int size, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  threads.clear();
  return failures;
}

/// As `outcomes`, rethrowing the first failure.
inline void on_ranks(int size, const std::function<void(int)>& body) {
  for (const std::exception_ptr& failure : outcomes(size, body))
    if (failure) std::rethrow_exception(failure);
}

/// Runs `body(group)` on every rank of a group of threads.
inline void on_groups(int size, const std::function<void(Group&)>& body, const GroupOptions& options = {}) {
  auto groups = Group::threads(size, options);
  on_ranks(size, [&](int rank) { body(*groups[static_cast<std::size_t>(rank)]); });
}

}  // namespace syncopate::test
