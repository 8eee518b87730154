// Agreement: rank 0 describes its gradients and buckets in one text; the others compare line by line and adopt.
#include "sync/agree.hpp"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "base/require.hpp"
#include "collective/state.hpp"
#include "schedule/policy.hpp"

namespace syncopate::sync {

namespace {

std::string describe(const Gradient& gradient) {
  return fmt::format("'{}' {} x {}", gradient.name, name_of(gradient.dtype), gradient.elements);
}

std::vector<std::string> lines_of(const std::vector<Gradient>& gradients, const schedule::Partition& partition) {
  std::vector<std::string> lines{std::to_string(gradients.size())};
  for (const Gradient& gradient : gradients) lines.push_back(describe(gradient));
  for (const schedule::Bucket& bucket : partition) lines.push_back(fmt::format("{} {}", bucket.first, bucket.last));
  return lines;
}

/// Rank 0's text on every rank; the length travels first.
std::string share(Group& group, std::string text) {
  std::int64_t length = static_cast<std::int64_t>(text.size());
  broadcast(group, Buffer(&length, 1, DType::i64), {.name = "length of the synchronizer's plan"});
  base::require(length >= 0 && length < (1 << 28), "rank 0 describes its plan in {} bytes", length);
  std::vector<std::int32_t> words((static_cast<std::size_t>(length) + 3) / 4);
  std::ranges::copy(text, reinterpret_cast<char*>(words.data()));
  broadcast(group, Buffer(std::span(words)), {.name = "the synchronizer's plan"});
  return {reinterpret_cast<const char*>(words.data()), static_cast<std::size_t>(length)};
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

}  // namespace

schedule::Partition agree(Group& group, const std::vector<Gradient>& gradients, const schedule::Partition& mine) {
  const std::vector<std::string> own = lines_of(gradients, mine);
  std::string text;
  if (group.rank() == 0) text = fmt::format("{}\n", fmt::join(own, "\n"));
  const std::vector<std::string> theirs = split(share(group, std::move(text)));
  for (std::size_t i = 1; i <= gradients.size(); ++i) {
    const std::string other = i < theirs.size() ? theirs[i] : "no such gradient";
    if (other != own[i])
      refuse(group, fmt::format("gradient {} is {} here and {} there", i - 1, own[i], other), gradients[i - 1].name);
  }
  if (theirs.at(0) != own[0]) refuse(group, fmt::format("{} gradients here, {} there", own[0], theirs[0]), "");
  schedule::Partition partition;
  for (std::size_t i = gradients.size() + 1; i < theirs.size(); ++i) partition.push_back(parse_bucket(theirs[i]));
  const std::string flaw = schedule::illegal(partition, gradients.size());
  if (!flaw.empty()) refuse(group, "rank 0's plan is damaged: " + flaw, "");
  return partition;
}

}  // namespace syncopate::sync
