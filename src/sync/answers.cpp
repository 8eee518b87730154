// Answers: a codec's rounds among all ranks of a group, by collectives.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collective/group/impl.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync {

namespace {

Buffer bytes_buffer(base::Bytes bytes) { return {bytes.data(), bytes.size(), DType::u8}; }

/// Every rank's number on every rank.
std::vector<std::size_t> lengths_of_all(const ExchangeContext& context, std::size_t mine) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(context.group.size()));
  lengths[static_cast<std::size_t>(context.group.rank())] = static_cast<std::int64_t>(mine);
  run(context.group, Collective::allgather, Buffer(std::span(lengths)), {.name = context.name});
  const bool sensible =
      std::ranges::all_of(lengths, [](std::int64_t n) { return n >= 0 && n < (std::int64_t{1} << 40); });
  if (!sensible) throw Corrupt(fmt::format("lengths of the packets of '{}' cannot be", context.name));
  return {lengths.begin(), lengths.end()};
}

void average(const ExchangeContext& context, const Buffer& payload) {
  run(context.group, Collective::allreduce, payload,
      {.op = ReduceOp::average, .algorithm = context.algorithm, .name = context.name});
}

compress::Answer gathered(const ExchangeContext& context, const compress::Round& round) {
  const base::Bytes mine = round.payload.bytes();
  std::vector<std::size_t> lengths(round.lengths.begin(), round.lengths.end());
  if (lengths.empty()) lengths = lengths_of_all(context, mine.size());
  const auto rank = static_cast<std::size_t>(context.group.rank());
  const base::Bytes all = context.memory.take(context.group, lengths);
  const std::size_t begin = std::accumulate(lengths.begin(), lengths.begin() + rank, std::size_t{0});
  std::ranges::copy(mine, all.begin() + static_cast<std::ptrdiff_t>(begin));
  const std::string algorithm = algorithm_for(Collective::allgather_v, context.algorithm);
  context.group.impl().run({.collective = Collective::allgather_v,
                            .data = bytes_buffer(all),
                            .options = {.algorithm = algorithm, .name = context.name},
                            .parts = std::move(lengths)});
  return context.memory.answer();
}

compress::Answer scattered(const ExchangeContext& context, const compress::Round& round) {
  const auto ranks = static_cast<std::size_t>(context.group.size()),
             rank = static_cast<std::size_t>(context.group.rank());
  const std::vector<std::size_t> arrivals(ranks, round.lengths[rank]);
  const base::Bytes all = context.memory.take(context.group, arrivals);
  const std::string algorithm = algorithm_for(Collective::alltoall_v, context.algorithm);
  context.group.impl().run({.collective = Collective::alltoall_v,
                            .data = bytes_buffer(round.payload.bytes()),
                            .options = {.algorithm = algorithm, .name = context.name},
                            .out = bytes_buffer(all),
                            .parts = {round.lengths.begin(), round.lengths.end()},
                            .out_parts = arrivals});
  return context.memory.answer();
}

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

compress::Answer combine_among_all(const ExchangeContext& context, const compress::Round& round) {
  switch (round.combine) {
    case compress::Combine::gather:
      return gathered(context, round);
    case compress::Combine::scatter:
      return scattered(context, round);
    default:
      average(context, round.payload);
      return {};
  }
}

}  // namespace syncopate::sync
