// Agreement: rank 0 describes options, gradients and buckets; the others compare, and adopt its plan.
#include "sync/planning/agree.hpp"

#include "base/require.hpp"
#include "schedule/policy.hpp"
#include "sync/planning/proposal.hpp"

namespace syncopate::sync::planning {

namespace {

/// Rank 0's text on every rank; its length is broadcast first.
std::string share(Group& group, std::string text) {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  broadcast(group, Buffer(&length, 1, DType::i64), {.name = "length of the synchronizer's plan"});
  base::require(length >= 0 && length < (1 << 28), "rank 0 describes its plan in {} bytes", length);
  text.resize(static_cast<std::size_t>(length));
  broadcast(group, Buffer(text.data(), text.size(), DType::u8), {.name = "the synchronizer's plan"});
  return text;
}

[[noreturn]] void refuse(Group& group, const std::string& what, const std::string& tensor) {
  group.abort(what, tensor);
  throw Mismatch(what, Where{group.rank(), 0, "synchronizer", tensor});
}

schedule::Partition checked(Group& group, std::size_t gradients, schedule::Partition partition) {
  const std::string flaw = schedule::illegal(partition, gradients);
  if (!flaw.empty()) refuse(group, "rank 0's plan is damaged: " + flaw, "");
  return partition;
}

}  // namespace

AgreedPlan agree(Group& group, const std::vector<Gradient>& gradients, const SynchronizerOptions& options,
                 const AgreedPlan& mine) {
  const Proposal own = proposal(gradients, options, mine);
  Proposal theirs = decode_proposal(share(group, group.rank() == 0 ? encode(own) : std::string()));
  if (const auto difference = difference_of(own, theirs, group.rank()))
    refuse(group, difference->what, difference->gradient ? gradients[*difference->gradient].name : "");
  const bool step_decides = schedule::policy_named(theirs.plan.planner.policy).needs == schedule::Needs::events;
  if (!step_decides) theirs.plan.partition = checked(group, gradients.size(), std::move(theirs.plan.partition));
  return std::move(theirs.plan);
}

schedule::Partition agree(Group& group, std::size_t gradients, const schedule::Partition& mine) {
  const std::string text = share(group, group.rank() == 0 ? encode(mine) : std::string());
  return checked(group, gradients, decode_partition(text));
}

}  // namespace syncopate::sync::planning
