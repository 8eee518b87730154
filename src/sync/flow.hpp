// Flow: everything that the buckets of a synchronizer, or of a combiner, have in common.
#pragma once

#include <string>
#include <vector>

#include "sync/bucket.hpp"
#include "sync/codec_state.hpp"
#include "sync/step.hpp"
#include "sync/weight_updater.hpp"
#include "syncopate/trace.hpp"

namespace syncopate::sync {

class Traced final {
 public:
  Traced(Trace* trace, const char* track, const std::string& name, std::uint64_t bytes)
      : trace_(trace != nullptr && trace->running() ? trace : nullptr) {
    if (trace_ != nullptr) span_ = {track, name, trace_->now_s(), 0, bytes};
  }
  ~Traced() {
    if (trace_ == nullptr) return;
    span_.end_s = trace_->now_s();
    trace_->add(std::move(span_));
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

 private:
  Trace* trace_;
  Span span_;
};

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
        state(state_bytes(inputs), group.rank(), group.size()) {}
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  [[nodiscard]] SavedCodecState save() const { return state.save(owner_of(codecs), gradients); }
  void restore(const SavedCodecState& saved) { state.restore(saved, owner_of(codecs), gradients); }
  /// Ends a step: its state is kept if every rank's values were finite. A collective if a codec has state.
  void end_step();

  Group& group;
  const std::vector<Gradient> gradients;
  const SynchronizerOptions options;
  const Exchange& exchange;
  const std::vector<compress::Settings> codecs;  ///< of every gradient
  const RowShare share;
  const Cut cut;
  Arena arena;
  WeightUpdater updater;
  const BucketInputs inputs{group, gradients, arena, codecs, share, cut, options.coding.seed, options.weights};
  CodecState state;  ///< used by the threads of a step, and between steps by the caller's
  CodecReports reports{.selections = std::vector<compress::SelectionReport>(gradients.size())};  ///< used as `state` is
  const StepContext context{exchange, group, options.algorithm, share,   cut,
                            codecs,   state, reports,           updater, options.trace};
};

}  // namespace syncopate::sync
