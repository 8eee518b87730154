// Proposal: descriptions that are compared as texts, and their bytes on the wire.
#include "sync/planning/proposal.hpp"

#include <fmt/format.h>

#include "base/require.hpp"
#include "base/wire.hpp"
#include "schedule/policy.hpp"
#include "sync/codec_state.hpp"
#include "syncopate/tooling/settings.hpp"

namespace syncopate::sync::planning {

namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;

std::string describe(const Gradient& gradient) {
  const std::string rows = gradient.rows == 0 ? "" : fmt::format(" in {} rows", gradient.rows);
  const std::string codec = gradient.codec.empty() ? "" : fmt::format(" by codec {}", gradient.codec);
  return fmt::format("'{}' {} x {}{}{}", gradient.name, name_of(gradient.dtype), gradient.elements, rows, codec);
}

/// The first name in the options that this rank's catalogue lacks, with its kind; empty: none.
std::string missing_name(const SynchronizerOptions& options, std::span<const Gradient> gradients) {
  const auto missing = [](std::string_view what, std::string_view text, const auto& entries) {
    const std::string_view name = text.substr(0, text.find(':'));
    const bool is_there = std::ranges::any_of(entries, [&](const auto* entry) { return entry->name == name; });
    return is_there ? std::string{} : fmt::format("{} '{}'", what, name);
  };
  const auto codecs = options.catalogue.codecs();
  std::string found = missing("codec", options.coding.codec, codecs);
  for (const Gradient& gradient : gradients)
    if (found.empty() && !gradient.codec.empty()) found = missing("codec", gradient.codec, codecs);
  return found.empty() ? missing("policy", options.policy, options.catalogue.policies()) : found;
}

std::vector<std::string> describe(const SynchronizerOptions& options, std::span<const Gradient> gradients) {
  const std::string missing = missing_name(options, gradients);
  std::vector<std::string> texts{missing.empty() ? "a catalogue with all names"
                                                 : fmt::format("a catalogue without {}", missing)};
  const auto add = [&](const auto& settings, const auto& given) {
    for (const auto& setting : settings) texts.push_back(fmt::format("{} {}", setting.name, setting.text(given)));
  };
  add(coding_settings(), options.coding);
  add(exchange_settings(), options);
  return texts;
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

}  // namespace

Proposal proposal(const std::vector<Gradient>& gradients, const SynchronizerOptions& options, const AgreedPlan& plan) {
  Proposal made{describe(options, gradients), {}, plan};
  for (const Gradient& gradient : gradients) made.gradients.push_back(describe(gradient));
  return made;
}

std::optional<Difference> difference_of(const Proposal& own, const Proposal& theirs, int rank) {
  const auto at = [](const Texts& texts, std::size_t i, const char* otherwise) {
    return i < texts.size() ? texts[i] : otherwise;
  };
  for (std::size_t i = 0; i < own.options.size(); ++i)
    if (const std::string other = at(theirs.options, i, "nothing"); other != own.options[i])
      return Difference{fmt::format("synchronizers differ: {} on rank {}, {} on rank 0; give all ranks the same",
                                    own.options[i], rank, other),
                        {}};
  const std::string models = fmt::format("rank {} and rank 0 train different models: ", rank);
  for (std::size_t i = 0; i < own.gradients.size(); ++i)
    if (const std::string other = at(theirs.gradients, i, "no such gradient"); other != own.gradients[i])
      return Difference{fmt::format("{}gradient {} is {} here and {} there", models, i, own.gradients[i], other), i};
  if (theirs.gradients.size() == own.gradients.size()) return std::nullopt;
  return Difference{fmt::format("{}{} gradients here, {} there", models, own.gradients.size(), theirs.gradients.size()),
                    {}};
}

std::string encode(const Proposal& proposal) {
  base::WireWriter out;
  write(out, proposal.options);
  write(out, proposal.gradients);
  out.text(proposal.plan.planner.policy, kMostText);
  out.number(static_cast<std::uint8_t>(proposal.plan.planner.cost_is_given));
  out.number(static_cast<std::int32_t>(proposal.plan.planner.check_every));
  write(out, proposal.plan.partition);
  return out.take();
}

std::string encode(const schedule::Partition& partition) {
  base::WireWriter out;
  write(out, partition);
  return out.take();
}

Proposal decode_proposal(std::string_view text) {
  base::WireReader in(text);
  Proposal found{.options = read_texts(in), .gradients = read_texts(in), .plan = {}};
  found.plan.planner.policy = in.text(kMostText);
  found.plan.planner.cost_is_given = in.number<std::uint8_t>() != 0;
  found.plan.planner.check_every = in.number<std::int32_t>();
  found.plan.partition = read_partition(in);
  in.end();
  return found;
}

schedule::Partition decode_partition(std::string_view text) {
  base::WireReader in(text);
  schedule::Partition partition = read_partition(in);
  in.end();
  return partition;
}

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

/// Rank 0's policy, which this rank runs too.
const schedule::Policy& policy_of(Group& group, const PlannerOptions& planner) {
  try {
    return schedule::policy_named(planner.policy, planner.catalogue);
  } catch (const Misuse& error) {
    refuse(
        group,
        fmt::format("rank {} lacks rank 0's policy: {}; give all ranks the same catalogue", group.rank(), error.what()),
        "");
  }
}

}  // namespace

AgreedPlan agree(Group& group, const std::vector<Gradient>& gradients, const SynchronizerOptions& options,
                 const AgreedPlan& mine) {
  const Proposal own = proposal(gradients, options, mine);
  Proposal theirs = decode_proposal(share(group, group.rank() == 0 ? encode(own) : std::string()));
  if (const auto difference = difference_of(own, theirs, group.rank()))
    refuse(group, difference->what, difference->gradient ? gradients[*difference->gradient].name : "");
  theirs.plan.planner.catalogue = options.catalogue;
  const bool step_decides = policy_of(group, theirs.plan.planner).needs == schedule::Needs::events;
  if (!step_decides) theirs.plan.partition = checked(group, gradients.size(), std::move(theirs.plan.partition));
  return std::move(theirs.plan);
}

std::vector<compress::Settings> compared_settings(Group& group, const std::vector<Gradient>& gradients,
                                                  const SynchronizerOptions& options) {
  if (options.exchange != "none" && !gradients.empty() && !missing_name(options, gradients).empty())
    static_cast<void>(agree(group, gradients, options, {{.policy = "single"}, {{0, gradients.size() - 1}}}));
  return checked_settings(gradients, options);
}

void refuse(Group& group, std::string_view exchange, const Misuse& misuse) {
  if (exchange == "none") throw;
  syncopate::refuse(group, misuse.what());
}

schedule::Partition agree(Group& group, std::size_t gradients, const schedule::Partition& mine) {
  const std::string text = share(group, group.rank() == 0 ? encode(mine) : std::string());
  return checked(group, gradients, decode_partition(text));
}

}  // namespace syncopate::sync::planning
