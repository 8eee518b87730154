// Bench: the sentence with all that it takes for granted, for codecs that stand on no shelf.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "sync/sample_codecs.hpp"
#include "sync/step.hpp"

namespace syncopate::test {

/// What the synchronizer's threads do with a bucket.
inline void step_of(sync::Bucket& bucket, const sync::StepContext& context, sync::WeightUpdater& updater) {
  sync::encode(bucket, context);
  sync::combine(bucket, context);
  sync::decode(bucket, context);
  updater.apply(bucket);
}

/// All that a step needs, for a codec that stands on no shelf.
struct Bench {
  Bench(Group& of, const compress::Codec& with, std::vector<Gradient> of_model, std::string_view by = "allreduce")
      : group(of),
        model(std::move(of_model)),
        codecs(model.size(), compress::Settings{&with, ""}),
        exchange(sync::exchange_named(by)) {}

  void step(const schedule::Bucket& bucket) { step_of(buckets.of(bucket), context, updater); }
  std::span<float> gradient(std::size_t i) { return floats_of(arena.gradient(i)); }

  Group& group;
  std::vector<Gradient> model;
  std::vector<compress::Settings> codecs;
  const sync::Exchange& exchange;
  SynchronizerOptions options{};
  sync::Arena arena{group, model};
  sync::WeightUpdater updater{exchange, group, options, arena};
  sync::Share share = sync::share_of(exchange, group);
  sync::Cut cut{model, share};
  sync::BucketInputs inputs{group, model, arena, codecs, share, cut};
  sync::CodecState state{sync::state_bytes(inputs)};
  sync::StepContext context{exchange, group, options.algorithm, share, cut, state};
  sync::Buckets buckets{inputs, updater};
};

}  // namespace syncopate::test
