// Matching: what is wrong with a frame that does not fit its receive.
#include "transport/matching.hpp"

#include <fmt/format.h>

#include "transport/membership/control.hpp"

namespace syncopate::transport {

using membership::LinkFailure;

LinkFailure misfit(const FrameHead& expected, const FrameHead& arrived) {
  const std::uint64_t wanted = expected.label.operation, came = arrived.label.operation;
  const bool same_kind = membership::is_message(came) == membership::is_message(wanted);
  // A frame of an earlier operation: this rank called that one with no elements and expected nothing, so that is the
  // operation in which the ranks differ.
  if (same_kind && came < wanted) return {LinkFailure::Kind::other_operation, {}, came};
  if (arrived.label != expected.label) return {LinkFailure::Kind::other_operation, {}, wanted};
  return {LinkFailure::Kind::other_length,
          fmt::format("sent {} bytes where {} were expected", arrived.bytes, expected.bytes), wanted};
}

}  // namespace syncopate::transport
