// Answers: combines a codec's rounds among the ranks of a scope, by collectives.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collective/group/impl.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync {

namespace {

Buffer bytes_buffer(base::Bytes bytes) { return {bytes.data(), bytes.size(), DType::u8}; }

/// A round among the ranks of a scope.
class ScopedRound final {
 public:
  ScopedRound(Scope scope, const ExchangeContext& context)
      : context_(context),
        scope_(scope),
        ranks_(context.group.scope_ranks(scope).size()),
        rank_(static_cast<std::size_t>(std::max(context.group.scope_rank(scope), 0))) {}

  void average(const Buffer& payload) const {
    CollectiveOptions options = options_for(Collective::allreduce);
    options.op = ReduceOp::average;
    run(context_.group, Collective::allreduce, payload, options);
  }

  [[nodiscard]] compress::Answer gather(const compress::Round& round) const {
    const base::Bytes mine = round.payload.bytes();
    std::vector<std::size_t> lengths(round.lengths.begin(), round.lengths.end());
    if (lengths.empty()) lengths = lengths_of_all(mine.size());
    const base::Bytes all = context_.memory.take(context_.group, lengths);
    if (ranks_ > 0) {
      const std::size_t begin = std::accumulate(lengths.begin(), lengths.begin() + rank_, std::size_t{0});
      std::ranges::copy(mine, all.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    carry_out({.collective = Collective::allgather_v, .data = bytes_buffer(all), .parts = std::move(lengths)});
    return context_.memory.answer();
  }

  [[nodiscard]] compress::Answer scatter(const compress::Round& round) const {
    const std::vector<std::size_t> arrivals(ranks_, ranks_ == 0 ? 0 : round.lengths[rank_]);
    const base::Bytes all = context_.memory.take(context_.group, arrivals);
    carry_out({.collective = Collective::alltoall_v,
               .data = bytes_buffer(round.payload.bytes()),
               .out = bytes_buffer(all),
               .parts = {round.lengths.begin(), round.lengths.end()},
               .out_parts = arrivals});
    return context_.memory.answer();
  }

 private:
  [[nodiscard]] CollectiveOptions options_for(Collective collective) const {
    return {.algorithm = algorithm_for(collective, context_.algorithm), .name = context_.name, .scope = scope_};
  }

  void carry_out(collective::group::Request request) const {
    request.options = options_for(request.collective);
    context_.group.impl().run(request);
  }

  /// Every rank's number on every rank.
  [[nodiscard]] std::vector<std::size_t> lengths_of_all(std::size_t mine) const {
    std::vector<std::int64_t> lengths(ranks_);
    if (ranks_ > 0) lengths[rank_] = static_cast<std::int64_t>(mine);
    run(context_.group, Collective::allgather, Buffer(std::span(lengths)), {.name = context_.name, .scope = scope_});
    for (const std::int64_t length : lengths)
      if (length < 0 || length >= kMostPacket)
        throw Corrupt(fmt::format("a packet of '{}' has {} bytes, says its rank", context_.name, length));
    return {lengths.begin(), lengths.end()};
  }

  static constexpr std::int64_t kMostPacket = std::int64_t{1} << 40;

  const ExchangeContext& context_;
  const Scope scope_;
  const std::size_t ranks_, rank_;
};

}  // namespace

base::Bytes AnswerMemory::take(Group& group, std::span<const std::size_t> lengths) {
  const std::size_t bytes = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
  if (bytes > bytes_) {
    memory_ = group.allocate(bytes);
    bytes_ = bytes;
  }
  answer_.clear();
  std::size_t begin = 0;
  for (const std::size_t length : lengths) {
    answer_.emplace_back(memory_.get() + begin, length);
    begin += length;
  }
  return {memory_.get(), bytes};
}

compress::Answer combine_among(Scope scope, const ExchangeContext& context, const compress::Round& round) {
  const ScopedRound scoped(scope, context);
  switch (round.combine) {
    case compress::Combine::gather:
      return scoped.gather(round);
    case compress::Combine::scatter:
      return scoped.scatter(round);
    default:
      scoped.average(round.payload);
      return {};
  }
}

compress::Answer combine_among_all(const ExchangeContext& context, const compress::Round& round) {
  return combine_among(Scope::group, context, round);
}

}  // namespace syncopate::sync
