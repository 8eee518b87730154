// Complaint: what keeps posts to a peer from finishing, and when and how the group is told.
#include "transport/tcp/complaint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::transport::tcp {

namespace {
constexpr auto kGrace = std::chrono::milliseconds(300);
}

base::Time Complaints::face(int peer, const Trouble& trouble, base::Time at) {
  const Where where{rank_, peer, {}, {}};
  switch (trouble.kind) {
    case Trouble::Kind::corrupt:
      control_->report({"Corrupt", fmt::format("from rank {}: {}", peer, trouble.reason), where});
      return at;
    case Trouble::Kind::other_length:
      control_->report({"Mismatch",
                        fmt::format("in {} rank {} {} by rank {}", text_of_number(trouble.expected.operation), peer,
                                    trouble.reason, rank_),
                        where});
      return at;
    case Trouble::Kind::other_operation:
      if (!asked_) control_->mismatch(peer, trouble.expected.operation);
      asked_ = true;
      return base::kNever;  // control's word rings the mailbox
    case Trouble::Kind::lost:
      break;
  }
  since_ = std::min(since_, at);
  const base::Time end = since_ + kGrace;
  if (at < end) return end;
  lose(peer, trouble.reason);
  return at;
}

void Complaints::lose(int peer, const std::string& reason) {
  const std::string message =
      control_->has_left(peer)
          ? fmt::format("rank {} left the group while rank {} still exchanged data with it", peer, rank_)
          : fmt::format("rank {} lost rank {}: {}", rank_, peer, reason);
  control_->report({"PeerLost", message, {rank_, peer, {}, {}}});
}

}  // namespace syncopate::transport::tcp
