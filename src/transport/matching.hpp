// Matching: whether an arrived frame is the one that the posted receive expects.
#pragma once

#include <optional>

#include "transport/membership/link_failure.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport {

/// How a frame differs from the receive at the head of its link.
[[nodiscard]] membership::LinkFailure misfit(const FrameHead& expected, const FrameHead& arrived);

/// Rule of every link: label and length must be those of the receive. Returns empty if they are.
[[nodiscard]] inline std::optional<membership::LinkFailure> match(const FrameHead& expected, const FrameHead& arrived) {
  if (arrived.label == expected.label && arrived.bytes == expected.bytes) return std::nullopt;
  return misfit(expected, arrived);
}

}  // namespace syncopate::transport
