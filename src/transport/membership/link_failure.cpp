// LinkFailures: turns each kind of failed link into the error that all ranks throw.
#include "transport/membership/link_failure.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::transport::membership {

base::Time LinkFailures::report(int peer, const LinkFailure& link_failure, base::Time at) {
  const Where where{rank_, peer, {}, {}};
  switch (link_failure.kind) {
    case LinkFailure::Kind::corrupt:
      control_->report({ErrorKind::corrupt, fmt::format("from rank {}: {}", peer, link_failure.reason), where});
      return at;
    case LinkFailure::Kind::refused:
      control_->report({ErrorKind::system_failure,
                        fmt::format("rank {} cannot reach rank {}: {}", rank_, peer, link_failure.reason),
                        {rank_}});
      return at;
    case LinkFailure::Kind::other_length:
      control_->report({ErrorKind::mismatch,
                        fmt::format("in {} rank {} {} by rank {}", text_of_number(link_failure.operation), peer,
                                    link_failure.reason, rank_),
                        where});
      return at;
    case LinkFailure::Kind::other_operation:
      if (!asked_) control_->mismatch(peer, link_failure.operation);
      asked_ = true;
      return base::kNever;  // control wakes the poll when it has the peer's call
    case LinkFailure::Kind::lost:
      break;
  }
  if (since_ == base::kNever) {
    since_ = at;
    first_ = {peer, link_failure.reason};
  }
  const base::Time end = since_ + control_->grace();
  if (at < end) return end;
  report_lost(first_.peer, first_.reason);  // the others may have closed their links because of that one
  return at;
}

void LinkFailures::report_lost(int peer, const std::string& reason) {
  const std::string message =
      control_->has_left(peer)
          ? fmt::format("rank {} left the group while rank {} still exchanged data with it", peer, rank_)
          : fmt::format("rank {} lost rank {}: {}", rank_, peer, reason);
  control_->report({ErrorKind::peer_lost, message, {rank_, peer, {}, {}}});
}

}  // namespace syncopate::transport::membership
