// Ranks as threads: what nearly every test of several ranks needs.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
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

/// Ranks that join each other with `options`, in threads of this process; `own` may change them for each rank.
inline std::vector<std::unique_ptr<Group>> joined(
    int size, GroupOptions options, const std::function<void(GroupOptions&)>& own = [](GroupOptions&) {}) {
  std::string folder = (std::filesystem::temp_directory_path() / "syncopate-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder to meet in");
  options.rendezvous = "file://" + folder;
  options.silence = std::chrono::seconds(10);  // threads of a busy machine under a sanitizer
  std::vector<std::unique_ptr<Group>> groups(static_cast<std::size_t>(size));
  on_ranks(size, [&](int rank) {
    GroupOptions mine = options;
    mine.rank = rank;
    mine.size = size;
    own(mine);
    groups[static_cast<std::size_t>(rank)] = Group::join(mine);
  });
  std::filesystem::remove_all(folder);
  return groups;
}

/// Runs `body(group)` on every rank of a group that joined over `transport`, and returns each rank's exception. A rank
/// leaves the group when its body returns.
inline std::vector<std::exception_ptr> outcomes_over(const std::string& transport, int size,
                                                     const std::function<void(Group&)>& body,
                                                     GroupOptions options = {}) {
  options.transport = transport_named(transport);
  auto groups = joined(size, options);
  return outcomes(size, [&](int rank) {
    const auto own = std::move(groups[static_cast<std::size_t>(rank)]);
    body(*own);
  });
}

/// Runs `body(group)` on every rank of groups of threads, over TCP and in shared memory.
inline void on_every_transport(int size, const std::function<void(Group&)>& body, const GroupOptions& options = {}) {
  on_groups(size, body, options);
  for (const char* transport : {"tcp", "shm"})
    for (const std::exception_ptr& failure : outcomes_over(transport, size, body, options))
      if (failure) std::rethrow_exception(failure);
}

}  // namespace syncopate::test
