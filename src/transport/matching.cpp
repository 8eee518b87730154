// Matching: finds how a frame differs from its receive.
#include "transport/matching.hpp"

#include <fmt/format.h>

#include "transport/membership/control.hpp"

namespace syncopate::transport {

using membership::LinkFailure;

LinkFailure misfit(const FrameHead& expected, const FrameHead& arrived) {
  const std::uint64_t wanted = expected.label.operation, came = arrived.label.operation;
  const bool same_kind = membership::is_message(came) == membership::is_message(wanted);
  // A frame of an earlier operation: this rank called that operation with no elements and expected nothing, so the
  // ranks differ in that operation.
  if (same_kind && came < wanted) return {LinkFailure::Kind::other_operation, {}, came};
  if (arrived.label != expected.label) return {LinkFailure::Kind::other_operation, {}, wanted};
  return {LinkFailure::Kind::other_length,
          fmt::format("sent {} bytes where {} were expected", arrived.bytes, expected.bytes), wanted};
}

}  // namespace syncopate::transport
