// A codec's settings as the synchronizer's options give them, and its state per gradient in two copies.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compress/codec.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// State belongs to gradients, not to buckets, so it survives a change of the partition. Law: what a step writes takes
/// effect when the step has ended on this rank without an error (`commit`); until then the last copy is unchanged.
/// Used by the threads of a step during it, and by the caller's thread between steps.
class CodecState final {
 public:
  /// `bytes` of each gradient; the state is that of this rank.
  CodecState(std::span<const std::size_t> bytes, int rank, int ranks);

  [[nodiscard]] base::Bytes kept(std::size_t gradient) noexcept { return slots_[gradient].copies[now_]; }
  [[nodiscard]] base::Bytes next(std::size_t gradient) noexcept { return slots_[gradient].copies[1 - now_]; }
  /// Notes that this rank has a value in this step that is not finite. Called from any thread of the step.
  void note_not_finite() noexcept { is_finite_ = false; }
  [[nodiscard]] bool is_finite() const noexcept {
    return is_finite_;
  }  ///< whether no such value was noted in this step
  /// Ends the step, and keeps what it wrote.
  void commit() noexcept;
  /// Ends the step, and keeps the state from before it.
  void reject() noexcept;
  /// Restores the state from before the last step that ended. Throws Misuse if there was none since the last call, or
  /// since `restore`.
  void undo();
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }  ///< number of commits

  /// For checkpoints. `codec` is what owner_of returns. `restore` throws Misuse, and changes nothing, if a gradient has
  /// another name or length here, or if another rank has saved the state.
  [[nodiscard]] SavedCodecState save(const std::string& codec, std::span<const Gradient> gradients) const;
  void restore(const SavedCodecState& saved, const std::string& codec, std::span<const Gradient> gradients);

 private:
  struct Slot {
    std::vector<std::byte> copies[2];
  };
  std::vector<Slot> slots_;
  const int rank_, ranks_;
  std::size_t now_ = 0;  ///< index of the copy after the last completed step
  std::uint64_t steps_ = 0;
  std::atomic<bool> is_finite_ = true;
  enum class LastStep : std::uint8_t { none, committed, rejected } last_ = LastStep::none;  ///< what `undo` undoes
};

/// The elements and bytes that coders sent, in all steps. Used as CodecState is.
struct CodecReports {
  std::vector<compress::SelectionReport> selections;  ///< of every gradient
  std::uint64_t payload_bytes = 0;                    ///< the payloads of all rounds
};

/// Throws Misuse for unknown names, and for feedback that is not sound for the codec or has values out of range.
[[nodiscard]] compress::Settings codec_settings(const SynchronizerOptions& options);

/// The settings of every gradient: its own codec, or that of the options.
[[nodiscard]] std::vector<compress::Settings> codec_settings(const SynchronizerOptions& options,
                                                             std::span<const Gradient> gradients);
/// Checked against the exchange and every gradient too, so that errors appear before the first step.
[[nodiscard]] std::vector<compress::Settings> checked_settings(const std::vector<Gradient>& gradients,
                                                               const SynchronizerOptions& options);
/// One codec's text; of several "A x3, B x2": how many gradients in forward order have which.
[[nodiscard]] std::string text_of(std::span<const compress::Settings> settings);
/// The owner of the state between steps, in the form of text_of: the codecs' names and their kinds of feedback,
/// without parameters, so that parameters can change while residuals and velocities stay.
[[nodiscard]] std::string owner_of(std::span<const compress::Settings> settings);

}  // namespace syncopate::sync
