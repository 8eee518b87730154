// Agreement: rank 0 describes options, gradients and buckets; the others compare, and adopt its plan.
#include "sync/planning/agree.hpp"

#include <fmt/format.h>

#include "base/require.hpp"
#include "base/wire.hpp"
#include "collective/group/impl.hpp"
#include "schedule/policy.hpp"
#include "sync/codec_settings.hpp"

namespace syncopate::sync::planning {

namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;

std::string describe(const Gradient& gradient) {
  const std::string rows = gradient.rows == 0 ? "" : fmt::format(" in {} rows", gradient.rows);
  return fmt::format("'{}' {} x {}{}", gradient.name, name_of(gradient.dtype), gradient.elements, rows);
}

/// The options that affect the result of a step.
std::vector<std::string> describe(const SynchronizerOptions& options) {
  return {fmt::format("exchange {}", options.exchange),   fmt::format("codec {}", codec_settings(options).text()),
          fmt::format("algorithm {}", options.algorithm), fmt::format("seed {}", options.seed),
          fmt::format("clip_norm {}", options.clip_norm), fmt::format("broadcast_every {}", options.broadcast_every)};
}

using Texts = std::vector<std::string>;

void write(base::WireWriter& out, const Texts& texts) {
  out.number(static_cast<std::uint64_t>(texts.size()));
  for (const std::string& text : texts) out.text(text, kMostText);
}

Texts read_texts(base::WireReader& in) {
  Texts texts;
  for (auto left = in.number<std::uint64_t>(); left > 0; --left) texts.push_back(in.text(kMostText));
  return texts;
}

void write(base::WireWriter& out, const schedule::Partition& partition) {
  out.number(static_cast<std::uint64_t>(partition.size()));
  for (const schedule::Bucket& bucket : partition) {
    out.number(static_cast<std::uint64_t>(bucket.first));
    out.number(static_cast<std::uint64_t>(bucket.last));
  }
}

schedule::Partition read_partition(base::WireReader& in) {
  schedule::Partition partition;
  for (auto left = in.number<std::uint64_t>(); left > 0; --left) {
    const auto first = in.number<std::uint64_t>(), last = in.number<std::uint64_t>();
    partition.push_back({first, last});
  }
  return partition;
}

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

void compare_options(Group& group, const Texts& own, const Texts& theirs) {
  for (std::size_t i = 0; i < own.size(); ++i)
    if (i >= theirs.size() || own[i] != theirs[i])
      refuse(group,
             fmt::format("synchronizers differ: {} on rank {}, {} on rank 0; give all ranks the same", own[i],
                         group.rank(), i < theirs.size() ? theirs[i] : "nothing"),
             "");
}

void compare_gradients(Group& group, const std::vector<Gradient>& gradients, const Texts& theirs) {
  const std::string models = fmt::format("rank {} and rank 0 train different models: ", group.rank());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string own = describe(gradients[i]), other = i < theirs.size() ? theirs[i] : "no such gradient";
    if (other != own)
      refuse(group, fmt::format("{}gradient {} is {} here and {} there", models, i, own, other), gradients[i].name);
  }
  if (theirs.size() != gradients.size())
    refuse(group, fmt::format("{}{} gradients here, {} there", models, gradients.size(), theirs.size()), "");
}

schedule::Partition checked(Group& group, std::size_t gradients, schedule::Partition partition) {
  const std::string flaw = schedule::illegal(partition, gradients);
  if (!flaw.empty()) refuse(group, "rank 0's plan is damaged: " + flaw, "");
  return partition;
}

}  // namespace

AgreedPlan agree(Group& group, const std::vector<Gradient>& gradients, const SynchronizerOptions& options,
                 const AgreedPlan& mine) {
  const Texts own = describe(options);
  base::WireWriter out;
  if (group.rank() == 0) {
    write(out, own);
    Texts described;
    for (const Gradient& gradient : gradients) described.push_back(describe(gradient));
    write(out, described);
    out.text(mine.planner.policy, kMostText);
    out.number(static_cast<std::uint8_t>(mine.planner.cost_is_given));
    out.number(mine.planner.check_every);
    write(out, mine.partition);
  }
  const std::string text = share(group, out.take());
  base::WireReader in(text);
  compare_options(group, own, read_texts(in));
  compare_gradients(group, gradients, read_texts(in));
  AgreedPlan plan;
  plan.planner.policy = in.text(kMostText);
  plan.planner.cost_is_given = in.number<std::uint8_t>() != 0;
  plan.planner.check_every = in.number<int>();
  plan.partition = read_partition(in);
  const bool step_decides = schedule::policy_named(plan.planner.policy).needs == schedule::Needs::events;
  if (!step_decides) plan.partition = checked(group, gradients.size(), std::move(plan.partition));
  return plan;
}

schedule::Partition agree(Group& group, std::size_t gradients, const schedule::Partition& mine) {
  base::WireWriter out;
  if (group.rank() == 0) write(out, mine);
  const std::string text = share(group, out.take());
  base::WireReader in(text);
  return checked(group, gradients, read_partition(in));
}

}  // namespace syncopate::sync::planning
