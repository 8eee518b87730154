// Jobs of the cache's tests: ranks as threads that take epochs together.
#include "cache/sample.hpp"

#include "syncopate/collective.hpp"

namespace syncopate::cache::test {

std::vector<Sums> run(const Job& job, const MemorySource& source, std::uint64_t epochs) {
  std::vector<Sums> sums(epochs);
  std::mutex mutex;
  syncopate::test::on_groups(job.ranks, [&](Group& group) {
    const auto cache = Cache::form(group, source, job.seed, job.options(group.rank()));
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      const Counters row = take_epoch(*cache, source, epoch);
      {
        const std::lock_guard lock(mutex);
        Sums& sum = sums[epoch];
        sum.memory += row.memory.records;
        sum.disk += row.disk.records;
        sum.peers += row.peers.records;
        sum.origin += row.origin.records;
        sum.damaged += row.damaged;
      }
      barrier(group);
      if (group.rank() == 0) job.after(epoch);
      barrier(group);
    }
  });
  return sums;
}

}  // namespace syncopate::cache::test
