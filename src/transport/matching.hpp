// Matching: whether the frame that came is the one that the posted receive expects.
#pragma once

#include <optional>

#include "transport/membership/link_failure.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport {

/// What is wrong with a frame that does not fit the receive at the head of its link.
[[nodiscard]] membership::LinkFailure misfit(const FrameHead& expected, const FrameHead& arrived);

/// The rule of every link: label and length must be those of the receive. Empty if they are.
[[nodiscard]] inline std::optional<membership::LinkFailure> match(const FrameHead& expected, const FrameHead& arrived) {
  if (arrived.label == expected.label && arrived.bytes == expected.bytes) return std::nullopt;
  return misfit(expected, arrived);
}

}  // namespace syncopate::transport
