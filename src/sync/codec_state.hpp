// CodecState: what a codec keeps of every gradient between steps, in two copies: the last good step's and this step's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compress/codec.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// It belongs to gradients, not to buckets, so it survives any other partition. Law: what a step writes counts when the
/// step has ended on this rank without an error (`commit`); until then the last good step's is there, unchanged.
/// Used by the communication thread during a step, by the caller's between steps.
class CodecState final {
 public:
  /// One tensor per gradient, as the coder will see it: this rank's rows.
  CodecState(const compress::Settings& settings, std::span<const compress::Tensor> tensors);

  [[nodiscard]] base::Bytes kept(std::size_t gradient) noexcept { return slots_[gradient].copies[now_]; }
  [[nodiscard]] base::Bytes next(std::size_t gradient) noexcept { return slots_[gradient].copies[1 - now_]; }
  void commit() noexcept;
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }  ///< committed

  /// For checkpoints. `restore` throws Misuse where a gradient has another name or length here, and changes nothing
  /// then.
  [[nodiscard]] SavedCodecState save(const std::string& codec, std::span<const Gradient> gradients) const;
  void restore(const SavedCodecState& saved, const std::string& codec, std::span<const Gradient> gradients);

 private:
  struct Slot {
    std::vector<std::byte> copies[2];
  };
  std::vector<Slot> slots_;
  std::size_t now_ = 0;  ///< index of the last good step's copy
  std::uint64_t steps_ = 0;
};

}  // namespace syncopate::sync
