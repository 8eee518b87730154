// CodecState: two copies that are swapped after a step without errors.
#include "sync/codec_state.hpp"

#include "base/require.hpp"

namespace syncopate::sync {

CodecState::CodecState(std::span<const std::size_t> bytes) : slots_(bytes.size()) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (auto& copy : slots_[i].copies) copy.assign(bytes[i], std::byte{0});
}

void CodecState::commit() noexcept {
  now_ = 1 - now_;
  ++steps_;
  can_undo_ = true;
}

void CodecState::undo() {
  base::require(can_undo_, "there is no step to discard; allowed: once after each step that ended");
  now_ = 1 - now_;
  --steps_;
  can_undo_ = false;
}

SavedCodecState CodecState::save(const std::string& codec, std::span<const Gradient> gradients) const {
  SavedCodecState saved{.codec = codec, .steps = steps_};
  for (std::size_t i = 0; i < slots_.size(); ++i)
    saved.gradients.emplace_back(gradients[i].name, slots_[i].copies[now_]);
  return saved;
}

void CodecState::restore(const SavedCodecState& saved, const std::string& codec, std::span<const Gradient> gradients) {
  base::require(saved.codec == codec, "the saved state is of codec {}; the synchronizer's is {}", saved.codec, codec);
  base::require(saved.gradients.size() == slots_.size(), "the saved state has {} gradients; the synchronizer has {}",
                saved.gradients.size(), slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto& [name, bytes] = saved.gradients[i];
    base::require(name == gradients[i].name && bytes.size() == slots_[i].copies[now_].size(),
                  "the saved state of gradient {} is of '{}' with {} bytes; here it is '{}' with {}", i, name,
                  bytes.size(), gradients[i].name, slots_[i].copies[now_].size());
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].copies[now_] = saved.gradients[i].second;
  steps_ = saved.steps;
}

}  // namespace syncopate::sync
