// Flow: everything that the buckets of a synchronizer, or of a combiner, have in common.
#pragma once

#include <string>
#include <vector>

#include "sync/arena.hpp"
#include "sync/bucket.hpp"
#include "sync/codec_settings.hpp"
#include "sync/step.hpp"
#include "sync/weight_updater.hpp"

namespace syncopate::sync {

/// The owner of the gradients' memory: the arena, in the group's memory; or the caller, who places them for each
/// bucket.
enum class GradientMemory : std::uint8_t { arena, caller };

/// Gradients, their codecs and exchange, and the codec state that survives a step. Members refer to each other.
struct Flow {
  Flow(Group& of, std::vector<Gradient> all, const SynchronizerOptions& with, std::vector<compress::Settings> settings,
       GradientMemory memory)
      : group(of),
        gradients(std::move(all)),
        options(with),
        exchange(exchange_named(options.exchange)),
        codecs(std::move(settings)),
        share(share_of(exchange, group)),
        cut(gradients, share),
        arena(memory == GradientMemory::arena ? Arena(group, gradients) : Arena(gradients)),
        updater(exchange, group, options, arena),
        state(state_bytes(inputs)) {}
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  [[nodiscard]] SavedCodecState save() const { return state.save(text_of(codecs), gradients); }
  void restore(const SavedCodecState& saved) { state.restore(saved, text_of(codecs), gradients); }

  Group& group;
  const std::vector<Gradient> gradients;
  const SynchronizerOptions options;
  const Exchange& exchange;
  const std::vector<compress::Settings> codecs;  ///< of every gradient
  const RowShare share;
  const Cut cut;
  Arena arena;
  WeightUpdater updater;
  const BucketInputs inputs{group, gradients, arena, codecs, share, cut, options.seed, options.weights};
  CodecState state;  ///< used by the threads of a step, and between steps by the caller's
  const StepContext context{exchange, group, options.algorithm, share, cut, state, updater, options.trace};
};

}  // namespace syncopate::sync
