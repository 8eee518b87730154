// Answers: combines a codec's rounds among the ranks of a scope, by collectives.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "collective/group/access.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync {

namespace {

using Lengths = std::vector<std::size_t>;

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
    run(context_.group, Collective::allreduce, payload, std::move(options));
  }

  [[nodiscard]] compress::Answer gather(const compress::Round& round) const {
    const std::optional<Lengths> lengths = lengths_of_all(round, kAllreducePasses);
    if (!lengths) return declined();
    const base::Bytes all = context_.memory.take(context_.group, *lengths);
    if (ranks_ > 0) {
      const std::size_t begin = std::accumulate(lengths->begin(), lengths->begin() + rank_, std::size_t{0});
      std::ranges::copy(round.payload.bytes(), all.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    carry_out({.collective = Collective::allgather_v,
               .data = bytes_buffer(all),
               .out = bytes_buffer(all),
               .parts = *lengths});
    return context_.memory.answer();
  }

  /// Every rank sends its packet to the root alone, as an all-to-all whose other parts are empty.
  [[nodiscard]] compress::Answer gather_at_root(const compress::Round& round) const {
    const base::Bytes mine = round.payload.bytes();
    const std::optional<Lengths> lengths = lengths_of_all(round, kReducePasses);
    if (!lengths) return declined();
    Lengths departures(ranks_), arrivals(ranks_);
    departures[kRoot] = mine.size();
    if (rank_ == kRoot) arrivals = *lengths;
    const base::Bytes all = context_.memory.take(context_.group, arrivals);
    carry_out({.collective = Collective::alltoall_v,
               .data = bytes_buffer(mine),
               .out = bytes_buffer(all),
               .parts = departures,
               .out_parts = arrivals});
    return rank_ == kRoot ? context_.memory.answer() : compress::Answer{};
  }

  /// The merged payload reaches every rank by a gather to which only the first rank contributes.
  [[nodiscard]] compress::Answer merge(const compress::Round& round) const {
    const Buffer merged = merge_towards_first(round);
    const compress::Answer answer = gather({.combine = compress::Combine::gather, .payload = merged});
    return {.packets = answer.packets.first(std::min<std::size_t>(answer.packets.size(), 1)),
            .declined = answer.declined};
  }

  [[nodiscard]] compress::Answer merge_at_root(const compress::Round& round) const {
    const base::ConstBytes merged = merge_towards_first(round).bytes();
    if (rank_ != kRoot) return {};
    const std::size_t length = merged.size();
    std::ranges::copy(merged, context_.memory.take(context_.group, {&length, 1}).begin());
    return context_.memory.answer();
  }

  [[nodiscard]] compress::Answer scatter(const compress::Round& round) const {
    const Lengths arrivals =
        round.own_lengths ? announced_lengths(round) : Lengths(ranks_, ranks_ == 0 ? 0 : round.lengths[rank_]);
    const base::Bytes all = context_.memory.take(context_.group, arrivals);
    carry_out({.collective = Collective::alltoall_v,
               .data = bytes_buffer(round.payload.bytes()),
               .out = bytes_buffer(all),
               .parts = {round.lengths.begin(), round.lengths.end()},
               .out_parts = arrivals});
    return context_.memory.answer();
  }

 private:
  /// The lengths of the parts that arrive, by sender.
  [[nodiscard]] Lengths announced_lengths(const compress::Round& round) const {
    std::vector<std::int64_t> mine(ranks_), theirs(ranks_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) mine[rank] = signed_of(round.lengths[rank]);
    carry_out({.collective = Collective::alltoall, .data = std::span(mine), .out = std::span(theirs)});
    for (const std::int64_t length : theirs) require_length(length, round.most_bytes);
    return {theirs.begin(), theirs.end()};
  }

  void require_length(std::int64_t length, std::size_t most_bytes) const {
    if (length < 0 || length > signed_of(most_bytes))
      throw Corrupt(fmt::format("a rank announced a packet of {1} bytes for '{0}'; allowed: 0 to {2}", context_.name,
                                length, most_bytes));
  }

  [[nodiscard]] CollectiveOptions options_for(Collective collective) const {
    return {.algorithm = std::string(algorithm_for(collective, context_.algorithm)),
            .name = context_.name,
            .scope = scope_};
  }

  void carry_out(collective::group::Request request) const {
    request.options = options_for(request.collective);
    GroupAccess::run(context_.group, request);
  }

  /// Along a binomial tree: where bit b of a rank is its lowest, the rank sends in step b to the one without it, after
  /// it has merged what came in the steps before. Returns what all have become, on the first rank; nothing on the
  /// others.
  [[nodiscard]] Buffer merge_towards_first(const compress::Round& round) const {
    const std::vector<int>& ranks = context_.group.scope_ranks(scope_);
    Buffer payload = round.payload;
    for (std::size_t bit = 1; bit < ranks_; bit *= 2) {
      if ((rank_ & bit) != 0) {
        send(ranks[rank_ - bit], payload);
        return bytes_buffer({});
      }
      if (rank_ + bit < ranks_) payload = round.merger->merge(received(ranks[rank_ + bit], round.most_bytes));
    }
    return payload;
  }

  /// The length travels ahead: only the sender knows it.
  void send(int to, const Buffer& payload) const {
    const std::int64_t length = signed_of(payload.bytes().size());
    message({.data = ConstBuffer(&length, 1, DType::i64), .to = to});
    if (length > 0) message({.data = bytes_buffer(payload.bytes()), .to = to});
  }

  [[nodiscard]] base::ConstBytes received(int from, std::size_t most_bytes) const {
    std::int64_t length = 0;
    message({.data = {}, .out = Buffer(&length, 1, DType::i64), .from = from});
    require_length(length, most_bytes);
    const auto bytes = static_cast<std::size_t>(length);
    const base::Bytes packet = context_.memory.take(context_.group, {&bytes, 1});
    if (length > 0) message({.data = {}, .out = bytes_buffer(packet), .from = from});
    return packet;
  }

  void message(collective::group::Request request) const {
    request.options.name = context_.name;
    GroupAccess::run(context_.group, request);
  }

  /// A rank's description of its packet, which the other ranks receive before the packet is gathered.
  struct Offer {
    std::int64_t bytes = 0;
    std::int64_t dense_bytes = 0;  ///< of the additive round that could take its place; 0: none
    std::int64_t ranks = 0;        ///< among which it is gathered
  };
  static_assert(sizeof(Offer) == 3 * sizeof(std::int64_t));

  static std::int64_t signed_of(std::size_t number) { return static_cast<std::int64_t>(number); }

  /// The offers of the whole group, not of the scope: ranks outside the scope, and ranks of other scopes, must decide
  /// alike, or they would call different operations.
  [[nodiscard]] std::vector<Offer> offers_of_all(const Offer& mine) const {
    Group& group = context_.group;
    std::vector<Offer> offers(static_cast<std::size_t>(group.size()));
    offers[static_cast<std::size_t>(group.rank())] = mine;
    const Buffer words(offers.data(), 3 * offers.size(), DType::i64);
    run(group, Collective::allgather, words, {.name = context_.name});
    for (const Offer& offer : offers)
      if (offer.bytes < 0 || offer.bytes >= kMostPacket)
        throw Corrupt(fmt::format("a rank announced a packet of {1} bytes for '{0}'", context_.name, offer.bytes));
    return offers;
  }

  /// The length of every rank's packet; nullopt if the round is declined.
  [[nodiscard]] std::optional<Lengths> lengths_of_all(const compress::Round& round, double dense_passes) const {
    if (!round.lengths.empty()) return Lengths(round.lengths.begin(), round.lengths.end());
    const std::vector<Offer> offers = offers_of_all({.bytes = signed_of(round.payload.bytes().size()),
                                                     .dense_bytes = signed_of(round.dense_bytes),
                                                     .ranks = signed_of(ranks_)});
    if (is_denser(offers, dense_passes)) return std::nullopt;
    Lengths lengths;
    for (const int rank : context_.group.scope_ranks(scope_))
      lengths.push_back(static_cast<std::size_t>(offers[static_cast<std::size_t>(rank)].bytes));
    return lengths;
  }

  /// How often (N - 1)/N of the dense bytes pass a port: in an all-reduce, and on the way to the root.
  static constexpr double kAllreducePasses = 2, kReducePasses = 1;

  /// Whether a dense round takes less than gathering: (N - 1)/N of all packets.
  [[nodiscard]] static bool is_denser(const std::vector<Offer>& offers, double dense_passes) {
    double packets = 0, dense = 0;
    std::int64_t ranks = 0;
    for (const Offer& offer : offers) {
      packets += static_cast<double>(offer.bytes);
      dense += static_cast<double>(offer.dense_bytes);
      ranks = std::max(ranks, offer.ranks);
    }
    return dense > 0 && packets * static_cast<double>(ranks) > dense_passes * dense;
  }

  [[nodiscard]] static compress::Answer declined() { return {.packets = {}, .declined = true}; }

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
    case compress::Combine::mergeable:
      return scoped.merge(round);
    default:
      scoped.average(round.payload);
      return {};
  }
}

compress::Answer combine_at_root(const ExchangeContext& context, const compress::Round& round) {
  const ScopedRound scoped(Scope::group, context);
  return round.combine == compress::Combine::mergeable ? scoped.merge_at_root(round) : scoped.gather_at_root(round);
}

compress::Answer combine_among_all(const ExchangeContext& context, const compress::Round& round) {
  return combine_among(Scope::group, context, round);
}

}  // namespace syncopate::sync
