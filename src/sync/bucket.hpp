// Bucket: gradients that travel together, as one span of the arena, and the coder that makes packets of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compress/codec.hpp"
#include "schedule/timeline.hpp"
#include "sync/arena.hpp"

namespace syncopate::sync {

class WeightUpdater;

struct Bucket {
  std::string name;  ///< first and last gradient
  Buffer gradient;
  std::unique_ptr<compress::Coder> coder;
  std::vector<Buffer> weights;      ///< of its gradients, in as few pieces as their memory allows; see optimizer
  std::size_t first = 0, last = 0;  ///< gradients
};

/// Buckets made once for each run of gradients that ever leaves together. Used from one thread at a time.
class Buckets final {
 public:
  /// The arguments must outlive this.
  Buckets(const std::vector<Gradient>& gradients, const Arena& arena, const compress::Codec& codec,
          const WeightUpdater& optimizer)
      : gradients_(gradients), arena_(arena), codec_(codec), updater_(optimizer) {}

  [[nodiscard]] Bucket& of(const schedule::Bucket& run);
  [[nodiscard]] std::string name_of(const schedule::Bucket& run) const;
  /// Between steps: forgets them where a policy that decides step by step has made too many.
  void limit();

 private:
  const std::vector<Gradient>& gradients_;
  const Arena& arena_;
  const compress::Codec& codec_;
  const WeightUpdater& updater_;
  std::map<std::pair<std::size_t, std::size_t>, Bucket> buckets_;
};

}  // namespace syncopate::sync
