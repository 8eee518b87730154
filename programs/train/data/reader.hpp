// How this rank reads its samples: directly from the data set, or through the cache that all ranks share.
#pragma once

#include <memory>
#include <vector>

#include "options.hpp"
#include "syncopate/cache.hpp"
#include "syncopate/group.hpp"
#include "syncopate/pipeline.hpp"

namespace syncopate::train {

class SampleReader : public input::Reader {
 public:
  /// Number of samples of each epoch by source; empty without a cache.
  [[nodiscard]] virtual std::vector<cache::Counters> counters() const = 0;
};

/// A reader that is throttled by --origin-rate, and uses a cache if --cache or --cache-folder is given. With a cache
/// this is a collective over a subgroup of its own, so another thread may use `group` meanwhile. `source` outlives the
/// reader. Throws what cache::Cache::form throws.
[[nodiscard]] std::unique_ptr<SampleReader> reader_of(Group& group, const input::Source& source,
                                                      const input::ReaderRank& reader, const Options& options);

}  // namespace syncopate::train
