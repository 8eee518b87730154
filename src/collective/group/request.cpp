// Requests: checks them before anything is sent, and describes them in text.
#include "collective/group/request.hpp"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <functional>

#include "base/require.hpp"

namespace syncopate::collective::group {

namespace {

std::string text_of(const std::vector<std::size_t>& parts) {
  constexpr std::size_t kShown = 16;
  if (parts.size() <= kShown) return fmt::format("parts of {}", fmt::join(parts, ", "));
  return fmt::format("{} parts ({:016x})", parts.size(), XXH3_64bits(parts.data(), parts.size() * sizeof(std::size_t)));
}

std::string text_of(const Tuning& tuning) {
  std::string text;
  if (tuning.blocks > 0) text += fmt::format(" in {} blocks", tuning.blocks);
  if (tuning.rows > 0 || tuning.columns > 0) text += fmt::format(" on a grid of {} x {}", tuning.rows, tuning.columns);
  if (tuning.inner != "auto") text += fmt::format(" with {} within hosts", tuning.inner);
  if (tuning.outer != "auto") text += fmt::format(" with {} between hosts", tuning.outer);
  return text;
}

std::string text_of(Scope scope) {
  if (scope == Scope::group) return {};
  return scope == Scope::host ? " within the host" : " across hosts";
}

void check_memory(const ConstBuffer& buffer, std::string_view what) {
  base::require(buffer.count == 0 || buffer.data != nullptr, "{}: {} elements at a null address", what, buffer.count);
}

void check_apart(const ConstBuffer& a, const ConstBuffer& b, std::string_view what) {
  base::require(a.dtype == b.dtype, "{}: two buffers of types {} and {}; allowed: one type", what, name_of(a.dtype),
                name_of(b.dtype));
  const std::less<const std::byte*> before;
  const auto one = a.bytes(), other = b.bytes();
  const bool apart = one.empty() || other.empty() || !before(other.data(), one.data() + one.size()) ||
                     !before(one.data(), other.data() + other.size());
  base::require(apart, "{}: its two buffers overlap", what);
}

void check_message(const Request& request, const Members& group) {
  const int rank = group.rank, size = group.request.ranks;
  constexpr int kMostRanks = 1 << 15;  // message numbers hold two of them
  for (const int peer : {request.to, request.from})
    base::require(peer == -1 || (peer >= 0 && peer < size && peer != rank),
                  "a message between rank {} and rank {}; allowed: the other ranks from 0 to {}", rank, peer, size - 1);
  base::require(size <= kMostRanks, "messages in a group of {} ranks; allowed: at most {}", size, kMostRanks);
  base::require(request.options.scope == Scope::group, "a message over scope {}; allowed: {}, peers are its ranks",
                name_of(request.options.scope), name_of(Scope::group));
  check_memory(request.data, "a message");
  check_memory(request.out, "a message");
  if (request.to >= 0 && request.from >= 0) check_apart(request.data, request.out, "exchange");
}

void check_alltoall(const Request& request, std::size_t size) {
  check_memory(request.out, "alltoall");
  base::require(request.data.count == request.out.count && request.data.count % size == 0,
                "alltoall: {} elements in, {} out on {} ranks; allowed: equal multiples of the ranks",
                request.data.count, request.out.count, size);
  check_apart(request.data, request.out, "alltoall");
}

/// The sum, or the largest number on overflow.
std::size_t sum_of(const std::vector<std::size_t>& parts) {
  std::size_t sum = 0;
  for (const std::size_t part : parts) sum = part > SIZE_MAX - sum ? SIZE_MAX : sum + part;
  return sum;
}

void check_parts(const ConstBuffer& data, const std::vector<std::size_t>& parts, std::string_view what,
                 std::size_t size) {
  const std::size_t sum = sum_of(parts);
  base::require(parts.size() == size && sum == data.count && sum != SIZE_MAX,
                "{}: {} parts with {} elements in total, a vector of {}; allowed: one part for each of {} ranks, with "
                "the vector's length in total",
                what, parts.size(), sum, data.count, size);
}

void check_alltoall_v(const Request& request, std::size_t rank, std::size_t size) {
  check_memory(request.out, "alltoall_v");
  check_parts(request.out, request.out_parts, "alltoall_v, out", size);
  base::require(request.parts[rank] == request.out_parts[rank],
                "alltoall_v: rank {} sends itself {} elements and expects {}; allowed: equal numbers", rank,
                request.parts[rank], request.out_parts[rank]);
  check_apart(request.data, request.out, "alltoall_v");
}

/// Refuses arguments that the collective does not take.
void check_extras(const Request& request, std::string_view what) {
  base::require(request.has_parts() || request.parts.empty(),
                "{}: {} lengths of parts are given; allowed: for allgather_v and alltoall_v", what,
                request.parts.size());
  base::require(request.collective == Collective::alltoall_v || request.out_parts.empty(),
                "{}: {} lengths of parts of `out` are given; allowed: for alltoall_v", what, request.out_parts.size());
  const bool in_place = request.out.data == request.data.data && request.out.count == request.data.count;
  base::require(plan::swaps(request.collective) || in_place,
                "{}: a second vector of {} elements is given; allowed: for alltoall and alltoall_v", what,
                request.out.count);
}

}  // namespace

void validate(const Request& request, const Scopes& scopes) {
  if (request.is_message()) return check_message(request, scopes.of(Scope::group));
  const Members& members = scopes.of(request.options.scope);
  if (members.ranks.empty()) return;  // this rank does not take part
  const PlanRequest& place = members.request;
  const std::string_view what = name_of(request.collective);
  base::require(request.options.root >= 0 && request.options.root < place.ranks, "{}: root is {}; allowed: 0 to {}",
                what, request.options.root, place.ranks - 1);
  check_memory(request.data, what);
  check_extras(request, what);
  const auto size = static_cast<std::size_t>(place.ranks);
  if (request.collective == Collective::alltoall) check_alltoall(request, size);
  if (request.has_parts()) check_parts(request.data, request.parts, what, size);
  if (request.collective == Collective::alltoall_v)
    check_alltoall_v(request, static_cast<std::size_t>(members.rank), size);
}

void check_choice(const Request& request, const Scopes& scopes) {
  const Members& members = scopes.of(request.options.scope);
  if (request.is_message() || members.ranks.empty()) return;
  static const Tuning untuned;
  if (request.options.algorithm != "auto" || request.options.tuning != untuned)
    static_cast<void>(select::choose(plan_request_of(request, members.request), {}));
}

std::string text_of(const Request& request, const PlanRequest& place) {
  const CollectiveOptions& options = request.options;
  if (request.collective == Collective::barrier)
    return "barrier" + (options.algorithm == "auto" ? "" : " by " + options.algorithm) + text_of(options.scope);
  std::string text = fmt::format("{} {}", name_of(request.collective), name_of(request.data.dtype));
  auto end = std::back_inserter(text);
  if (!request.has_parts()) fmt::format_to(end, " x {}", request.data.count);
  if (plan::reduces(request.collective)) fmt::format_to(end, " {}", name_of(options.op));
  if (plan::has_root(request.collective)) fmt::format_to(end, " root {}", options.root);
  if (options.algorithm != "auto") fmt::format_to(end, " by {}", options.algorithm);
  text += text_of(options.tuning);
  text += text_of(options.scope);
  if (place.ranks_per_host > 0) fmt::format_to(end, " on hosts of {}", place.ranks_per_host);
  if (!options.name.empty()) fmt::format_to(end, " '{}'", options.name);
  return text;
}

std::string text_of_parts(const Request& request, int rank) {
  if (request.collective == Collective::allgather_v) return fmt::format(" in {}", text_of(request.parts));
  return fmt::format(", of which rank {} sends {} and receives {}", rank, text_of(request.parts),
                     text_of(request.out_parts));
}

std::string text_of_message(const std::string& tensor, std::optional<std::int64_t> tag, std::pair<int, int> way,
                            const ConstBuffer& data) {
  std::string text =
      fmt::format("message from rank {} to rank {}: {} x {}", way.first, way.second, name_of(data.dtype), data.count);
  if (!tensor.empty()) fmt::format_to(std::back_inserter(text), " '{}'", tensor);
  if (tag) fmt::format_to(std::back_inserter(text), " with tag {}", *tag);
  return text;
}

PlanRequest plan_request_of(const Request& request, PlanRequest place) {
  place.collective = request.collective;
  place.algorithm = request.options.algorithm;
  place.root = request.options.root;
  place.bytes = request.planned_count() * size_of(request.data.dtype);
  place.tuning = request.options.tuning;
  return place;
}

std::vector<std::size_t> cuts_of(const Request& request) {
  std::vector<std::size_t> cuts;
  if (!request.has_parts()) return cuts;
  cuts.push_back(0);
  for (const auto* parts : {&request.parts, &request.out_parts})
    for (const std::size_t part : *parts) cuts.push_back(cuts.back() + part);
  return cuts;
}

}  // namespace syncopate::collective::group
