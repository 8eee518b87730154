// Agreement: rank 0 describes its gradients and buckets in one text; the others compare line by line and adopt.
#include "sync/agree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <sstream>

#include "base/require.hpp"
#include "collective/group/impl.hpp"
#include "schedule/policy.hpp"

namespace syncopate::sync {

namespace {

std::string describe(const Gradient& gradient) {
  return fmt::format("'{}' {} x {}", gradient.name, name_of(gradient.dtype), gradient.elements);
}

std::string describe(const PlannerOptions& planner) {
  return fmt::format("{} {} {}", planner.policy, planner.cost_is_given ? 1 : 0, planner.check_every);
}

PlannerOptions parse_planner_options(const std::string& line) {
  PlannerOptions planner;
  std::istringstream(line) >> planner.policy >> planner.cost_is_given >> planner.check_every;
  return planner;
}

std::vector<std::string> lines_of(const schedule::Partition& partition) {
  std::vector<std::string> lines;
  for (const schedule::Bucket& bucket : partition) lines.push_back(fmt::format("{} {}", bucket.first, bucket.last));
  return lines;
}

/// Number of gradients, each of them, the planner, the buckets.
std::vector<std::string> lines_of(const std::vector<Gradient>& gradients, const AgreedPlan& terms) {
  std::vector<std::string> lines{std::to_string(gradients.size())};
  for (const Gradient& gradient : gradients) lines.push_back(describe(gradient));
  lines.push_back(describe(terms.planner));
  std::ranges::copy(lines_of(terms.partition), std::back_inserter(lines));
  return lines;
}

/// Rank 0's text on every rank; the length travels first.
std::string share(Group& group, std::string text) {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  broadcast(group, Buffer(&length, 1, DType::i64), {.name = "length of the synchronizer's plan"});
  base::require(length >= 0 && length < (1 << 28), "rank 0 describes its plan in {} bytes", length);
  text.resize(static_cast<std::size_t>(length));
  broadcast(group, Buffer(text.data(), text.size(), DType::u8), {.name = "the synchronizer's plan"});
  return text;
}

[[noreturn]] void refuse(Group& group, const std::string& what, const std::string& tensor) {
  const std::string message = fmt::format("rank {} and rank 0 train different models: {}", group.rank(), what);
  group.abort(message, tensor);
  throw Mismatch(message, Where{group.rank(), 0, "synchronizer", tensor});
}

schedule::Bucket parse_bucket(const std::string& line) {
  schedule::Bucket bucket;
  std::istringstream(line) >> bucket.first >> bucket.last;
  return bucket;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const std::vector<std::string>& lines) { return fmt::format("{}\n", fmt::join(lines, "\n")); }

schedule::Partition parse_partition(Group& group, std::size_t gradients, std::span<const std::string> lines) {
  schedule::Partition partition;
  for (const std::string& line : lines) partition.push_back(parse_bucket(line));
  const std::string flaw = schedule::illegal(partition, gradients);
  if (!flaw.empty()) refuse(group, "rank 0's plan is damaged: " + flaw, "");
  return partition;
}

}  // namespace

AgreedPlan agree(Group& group, const std::vector<Gradient>& gradients, const AgreedPlan& mine) {
  const std::vector<std::string> own = lines_of(gradients, mine);
  const std::vector<std::string> theirs = split(share(group, group.rank() == 0 ? text_of(own) : std::string{}));
  for (std::size_t i = 1; i <= gradients.size(); ++i) {
    const std::string other = i < theirs.size() ? theirs[i] : "no such gradient";
    if (other != own[i])
      refuse(group, fmt::format("gradient {} is {} here and {} there", i - 1, own[i], other), gradients[i - 1].name);
  }
  if (theirs.at(0) != own[0]) refuse(group, fmt::format("{} gradients here, {} there", own[0], theirs[0]), "");
  AgreedPlan terms;
  terms.planner = parse_planner_options(theirs.at(gradients.size() + 1));
  const auto buckets = std::span(theirs).subspan(gradients.size() + 2);
  const bool step_decides = schedule::policy_named(terms.planner.policy).needs == schedule::Needs::events;
  if (!step_decides) terms.partition = parse_partition(group, gradients.size(), buckets);
  return terms;
}

schedule::Partition agree(Group& group, std::size_t gradients, const schedule::Partition& mine) {
  const std::string text = share(group, group.rank() == 0 ? text_of(lines_of(mine)) : std::string{});
  return parse_partition(group, gradients, split(text));
}

}  // namespace syncopate::sync
