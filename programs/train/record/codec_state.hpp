// State that a rank's codec keeps between steps, in a file next to the checkpoint: FILE.rank<R>.
#pragma once

#include <cstdint>
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

/// Whether there is nothing to save.
[[nodiscard]] bool is_empty(const SavedCodecState& state);
/// Throws SystemFailure.
void save_codec_state(const StateOf& place, const SavedCodecState& state);
/// Whether the saved state of a gradient must be as long as a fresh one. A worker of parameter servers adapts it to
/// other servers (TableWorker::restore).
enum class Lengths : std::uint8_t { equal, any };

/// The reason why `fresh`, the state of a codec before its first step, cannot be replaced by `earlier`; empty: it can.
[[nodiscard]] std::string difference_of(const SavedCodecState& earlier, const SavedCodecState& fresh,
                                        Lengths lengths = Lengths::equal);
/// The saved state of this rank for the codec of `fresh`, or the reason why there is none: the file is missing or
/// damaged, or is of another step, codec, or number of ranks.
struct FoundState {
  std::optional<SavedCodecState> state;
  std::string reason;
};
[[nodiscard]] FoundState find_codec_state(const StateOf& place, const SavedCodecState& fresh,
                                          Lengths lengths = Lengths::equal);

}  // namespace syncopate::train
