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
    if (lengths.empty()) {
      const std::vector<Offer> offers = offers_of_all(
          {.bytes = signed_of(mine.size()), .dense_bytes = signed_of(round.dense_bytes), .ranks = signed_of(ranks_)});
      if (is_denser(offers)) return declined();
      for (const int rank : context_.group.scope_ranks(scope_))
        lengths.push_back(static_cast<std::size_t>(offers[static_cast<std::size_t>(rank)].bytes));
    }
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

  /// What a rank tells the others of its packet before it is gathered.
  struct Offer {
    std::int64_t bytes = 0;
    std::int64_t dense_bytes = 0;  ///< of the additive round that could take its place; 0: none
    std::int64_t ranks = 0;        ///< among which it is gathered
  };
  static_assert(sizeof(Offer) == 3 * sizeof(std::int64_t));

  static std::int64_t signed_of(std::size_t number) { return static_cast<std::int64_t>(number); }

  /// Of the whole group, not of the scope: the ranks outside it, and those of other places, must decide alike, or they
  /// would call different operations.
  [[nodiscard]] std::vector<Offer> offers_of_all(const Offer& mine) const {
    Group& group = context_.group;
    std::vector<Offer> offers(static_cast<std::size_t>(group.size()));
    offers[static_cast<std::size_t>(group.rank())] = mine;
    const Buffer words(offers.data(), 3 * offers.size(), DType::i64);
    run(group, Collective::allgather, words, {.name = context_.name});
    for (const Offer& offer : offers)
      if (offer.bytes < 0 || offer.bytes >= kMostPacket)
        throw Corrupt(fmt::format("a packet of '{}' has {} bytes, says its rank", context_.name, offer.bytes));
    return offers;
  }

  /// Whether an all-reduce, of whose dense bytes 2 (N - 1)/N pass a port, takes less than gathering: (N - 1)/N of all
  /// packets.
  [[nodiscard]] static bool is_denser(const std::vector<Offer>& offers) {
    double packets = 0, dense = 0;
    std::int64_t ranks = 0;
    for (const Offer& offer : offers) {
      packets += static_cast<double>(offer.bytes);
      dense += static_cast<double>(offer.dense_bytes);
      ranks = std::max(ranks, offer.ranks);
    }
    return dense > 0 && packets * static_cast<double>(ranks) > 2 * dense;
  }

  [[nodiscard]] static compress::Answer declined() {
    compress::Answer answer;
    answer.declined = true;
    return answer;
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
