// Bench: the sentence with all that it takes for granted, for codecs that stand on no shelf.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "sync/flow.hpp"
#include "sync/sample_codecs.hpp"

namespace syncopate::test {

/// All that a step needs, for a codec that is on no shelf.
struct Bench {
  Bench(Group& group, const compress::Codec& codec, const std::vector<Gradient>& model,
        const std::string& exchange = "allreduce")
      : flow(group, model, {.exchange = exchange},
             std::vector<compress::Settings>(model.size(), compress::Settings{&codec, ""}),
             sync::GradientMemory::arena) {}

  void step(const schedule::Bucket& bucket) { sync::run_bucket(buckets.of(bucket), flow.context); }
  std::span<float> gradient(std::size_t i) { return floats_of(flow.arena.gradient(i)); }

  sync::Flow flow;
  sync::Buckets buckets{flow.inputs, flow.updater};
};

}  // namespace syncopate::test
