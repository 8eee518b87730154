// Feedback: what becomes of the elements that a codec leaves out of a packet.
#pragma once

#include <cstdint>
#include <string_view>

namespace syncopate {

/// Treatment of the elements that a codec leaves out of a packet.
enum class FeedbackKind : std::uint8_t {
  automatic,  ///< "auto": residual with the codecs for which it is sound, else none
  none,       ///< they are lost
  residual,   ///< they are added to the next gradient
  momentum    ///< momentum correction (Lin et al., ICLR 2018), in which the synchronizer accumulates the momentum of
              ///< every gradient, so that the optimizer must add none
};
inline constexpr FeedbackKind kFeedbackKinds[] = {FeedbackKind::automatic, FeedbackKind::none, FeedbackKind::residual,
                                                  FeedbackKind::momentum};
[[nodiscard]] std::string_view name_of(FeedbackKind kind) noexcept;
[[nodiscard]] FeedbackKind feedback_named(std::string_view name);  ///< throws Misuse, naming the allowed names

struct FeedbackOptions {
  FeedbackKind kind = FeedbackKind::automatic;
  double momentum = 0.9;           ///< momentum only: the factor, above 0 and below 1
  bool nesterov = false;           ///< momentum only
  double clip_norm = 0;            ///< > 0, not with "none": limit of the L2 norm of every local gradient that is coded
  double warmup_density = 0;       ///< sparse codecs: the density falls from this to the codec's own...
  std::uint64_t warmup_steps = 0;  ///< ...during this many steps, by equal ratios; 0: no warm-up
};

}  // namespace syncopate
