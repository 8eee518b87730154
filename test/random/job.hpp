// Job: a random program on ranks as threads, over a transport that is drawn too; ranks compare what must be equal.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "random/perform.hpp"
#include "ranks.hpp"

namespace syncopate::test {

struct Job {
  std::string transport;
  int ranks = 1;
  GroupOptions options;
  [[nodiscard]] int hosts() const {
    return options.ranks_per_host == 0 ? 1 : (ranks + options.ranks_per_host - 1) / options.ranks_per_host;
  }
};

[[nodiscard]] inline Job draw_job(Draw& draw) {
  Job job{.transport = draw.pick(std::array{"inproc", "tcp", "shm"}), .ranks = 1 + static_cast<int>(draw.below(6))};
  GroupOptions& options = job.options;
  options.log.level = LogLevel::off;
  options.timeout = std::chrono::seconds(60);
  options.ranks_per_host = draw.chance(40) ? 1 + static_cast<int>(draw.below(3)) : 0;
  options.streams = 1 + static_cast<int>(draw.below(3));
  options.checksum = draw.chance(30);
  options.spin = std::chrono::microseconds(draw.chance(50) ? 0 : 50);
  return job;
}

/// Runs `body` on every rank and throws the first failure. A rank that finds a wrong value aborts the others.
inline void run(const Job& job, const std::function<void(Group&, const Ledger&)>& body) {
  std::mutex mutex;
  std::map<std::string, std::uint64_t> digests;
  const Ledger ledger = [&](const std::string& place, std::uint64_t digest) {
    const std::lock_guard lock(mutex);
    const auto [entry, is_first] = digests.emplace(place, digest);
    if (!is_first && entry->second != digest) throw WrongValue("ranks end with different bits: " + place);
  };
  const auto guarded = [&](Group& group) {
    try {
      body(group, ledger);
    } catch (const WrongValue& wrong) {
      group.abort(wrong.what());
      throw;
    }
  };
  std::vector<std::exception_ptr> failures;
  if (job.transport == "inproc") {
    auto groups = Group::threads(job.ranks, job.options);
    failures = outcomes(job.ranks, [&](int rank) { guarded(*groups[static_cast<std::size_t>(rank)]); });
  } else {
    failures = outcomes_over(job.transport, job.ranks, guarded, job.options);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace syncopate::test
