// How this rank reads its samples: straight from the set, or through the cache that all ranks form.
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
  /// Where the records of each epoch came from; none without a cache.
  [[nodiscard]] virtual std::vector<cache::Counters> counters() const = 0;
};

/// Throttled by --origin-rate; through a cache if --cache or --cache-folder is given. A collective of `group` then,
/// over a part of its own: another thread may use `group` meanwhile. `source` outlives it. Throws what
/// cache::Cache::form throws.
[[nodiscard]] std::unique_ptr<SampleReader> reader_of(Group& group, const input::Source& source,
                                                      const input::Seat& seat, const Options& options);

}  // namespace syncopate::train
