// What a rank's codec keeps between steps, in a file beside the checkpoint: FILE.rank<R>.
#pragma once

#include <optional>
#include <string>

#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::train {

/// The checkpoint that a codec's state belongs to.
struct StateOf {
  std::string file;  ///< the checkpoint's
  std::uint64_t step = 0;
  std::uint64_t parameters = 0;  ///< hash of the checkpoint's
  int rank = 0, ranks = 1;
};

/// Whether there is anything to keep.
[[nodiscard]] bool is_empty(const SavedCodecState& state);
/// Throws SystemFailure.
void save_codec_state(const StateOf& place, const SavedCodecState& state);
/// Why `fresh`, of a codec that has not begun, cannot go on with `earlier`; empty: it can.
[[nodiscard]] std::string difference_of(const SavedCodecState& earlier, const SavedCodecState& fresh);
/// The state of this rank for the codec of `fresh`, or why there is none to go on with: the file is missing or damaged,
/// or is of another step, codec, or number of ranks.
struct FoundState {
  std::optional<SavedCodecState> state;
  std::string reason;
};
[[nodiscard]] FoundState find_codec_state(const StateOf& place, const SavedCodecState& fresh);

}  // namespace syncopate::train
