// Requests: checking them before anything is sent, and putting them in words.
#include "collective/group/request.hpp"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <functional>
#include <numeric>

#include "base/require.hpp"

namespace syncopate::collective::group {

namespace {

std::string text_of(const std::vector<std::size_t>& parts) {
  constexpr std::size_t kShown = 16;
  if (parts.size() <= kShown) return fmt::format(" in parts of {}", fmt::join(parts, ", "));
  return fmt::format(" in {} parts ({:016x})", parts.size(),
                     XXH3_64bits(parts.data(), parts.size() * sizeof(std::size_t)));
}

std::string text_of(const Tuning& tuning) {
  std::string text;
  if (tuning.blocks > 0) text += fmt::format(" in {} blocks", tuning.blocks);
  if (tuning.rows > 0 || tuning.columns > 0) text += fmt::format(" on a grid of {} x {}", tuning.rows, tuning.columns);
  if (tuning.inner != "auto") text += fmt::format(" with {} within hosts", tuning.inner);
  if (tuning.outer != "auto") text += fmt::format(" with {} between hosts", tuning.outer);
  return text;
}

void check_memory(const Buffer& buffer, std::string_view what) {
  base::require(buffer.count == 0 || buffer.data != nullptr, "{}: {} elements at a null address", what, buffer.count);
}

void check_apart(const Buffer& a, const Buffer& b, std::string_view what) {
  base::require(a.dtype == b.dtype, "{}: two buffers of types {} and {}; allowed: one type", what, name_of(a.dtype),
                name_of(b.dtype));
  const std::less<const std::byte*> before;
  const auto one = a.bytes(), other = b.bytes();
  const bool apart = one.empty() || other.empty() || !before(other.data(), one.data() + one.size()) ||
                     !before(one.data(), other.data() + other.size());
  base::require(apart, "{}: its two buffers overlap", what);
}

void check_message(const Request& request, int rank, int size) {
  constexpr int kMostRanks = 1 << 15;  // message numbers hold two of them
  for (const int peer : {request.to, request.from})
    base::require(peer == -1 || (peer >= 0 && peer < size && peer != rank),
                  "a message between rank {} and rank {}; allowed: the other ranks from 0 to {}", rank, peer, size - 1);
  base::require(size <= kMostRanks, "messages in a group of {} ranks; allowed: at most {}", size, kMostRanks);
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

void check_parts(const Request& request, std::size_t size) {
  const std::size_t sum = std::accumulate(request.parts.begin(), request.parts.end(), std::size_t{0});
  base::require(request.parts.size() == size && sum == request.data.count,
                "allgather_v: {} parts with {} elements in all, a vector of {}; allowed: one part for each of {} "
                "ranks, which make the vector",
                request.parts.size(), sum, request.data.count, size);
}

}  // namespace

void validate(const Request& request, int rank, const PlanRequest& place) {
  if (request.is_message()) return check_message(request, rank, place.ranks);
  const std::string_view what = name_of(request.collective);
  base::require(request.options.root >= 0 && request.options.root < place.ranks, "{}: root is {}; allowed: 0 to {}",
                what, request.options.root, place.ranks - 1);
  check_memory(request.data, what);
  if (request.collective == Collective::alltoall) check_alltoall(request, static_cast<std::size_t>(place.ranks));
  if (request.collective == Collective::allgather_v) check_parts(request, static_cast<std::size_t>(place.ranks));
  // What is left open is decided later; what is asked for must exist and fit.
  static const Tuning untuned;
  if (request.options.algorithm != "auto" || request.options.tuning != untuned)
    static_cast<void>(select::choose(plan_request_of(request, place), {}));
}

std::string text_of(const Request& request, const PlanRequest& place) {
  const CollectiveOptions& options = request.options;
  if (request.collective == Collective::barrier)
    return options.algorithm == "auto" ? "barrier" : fmt::format("barrier by {}", options.algorithm);
  std::string text =
      fmt::format("{} {} x {}", name_of(request.collective), name_of(request.data.dtype), request.data.count);
  auto end = std::back_inserter(text);
  if (!request.parts.empty()) text += text_of(request.parts);
  if (plan::reduces(request.collective)) fmt::format_to(end, " {}", name_of(options.op));
  if (plan::has_root(request.collective)) fmt::format_to(end, " root {}", options.root);
  if (options.algorithm != "auto") fmt::format_to(end, " by {}", options.algorithm);
  text += text_of(options.tuning);
  if (place.ranks_per_host > 0) fmt::format_to(end, " on hosts of {}", place.ranks_per_host);
  if (!options.name.empty()) fmt::format_to(end, " '{}'", options.name);
  return text;
}

std::string text_of_message(const Request& request, int from, int to, const Buffer& data) {
  std::string text = fmt::format("message from rank {} to rank {}: {} x {}", from, to, name_of(data.dtype), data.count);
  if (!request.options.name.empty()) fmt::format_to(std::back_inserter(text), " '{}'", request.options.name);
  return text;
}

PlanRequest plan_request_of(const Request& request, PlanRequest place) {
  place.collective = request.collective;
  place.algorithm = request.options.algorithm;
  place.root = request.options.root;
  place.bytes = request.data.count * size_of(request.data.dtype);
  place.tuning = request.options.tuning;
  return place;
}

std::vector<std::size_t> cuts_of(const Request& request) {
  std::vector<std::size_t> cuts;
  if (request.parts.empty()) return cuts;
  cuts.resize(request.parts.size() + 1);
  std::partial_sum(request.parts.begin(), request.parts.end(), cuts.begin() + 1);
  return cuts;
}

}  // namespace syncopate::collective::group
