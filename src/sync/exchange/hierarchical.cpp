// Hierarchical: gradients are reduced within every host, each rank's rows are combined across hosts, and widened again.
// CommLib section 3 (HiTopKComm, with a top-k codec): what crosses the slow network is coded once per host, not per
// rank.
//
//   hosts {0 1} {2 3}:   reduce-scatter 0-1, 2-3      rounds of the codec 0-2, 1-3      all-gather 0-1, 2-3
//   bytes per port between hosts: those of the codec's rounds among H hosts on 1/n of the gradients; n ranks a host
//   Hosts of unequal size: parts over as many ranks as the smallest has; the others help to reduce and get the result.
#include <algorithm>

#include "collective/group/access.hpp"
#include "collective/select/select.hpp"
#include "kernel/norm.hpp"
#include "sync/cut.hpp"

namespace syncopate::sync::exchange {

namespace {

constexpr Collective kReducing[] = {Collective::allreduce};

struct Hosts {
  std::size_t count = 1;
  std::size_t places = 1;  ///< ranks of the smallest
};

Hosts hosts_of(Group& group) {
  const auto hosts = collective::select::hosts_of(GroupAccess::place(group));
  if (hosts.empty()) return {.count = 1, .places = static_cast<std::size_t>(group.size())};
  std::vector<std::size_t> ranks(*std::ranges::max_element(hosts) + std::size_t{1});
  for (const std::uint32_t host : hosts) ++ranks[host];
  return {.count = ranks.size(), .places = *std::ranges::min_element(ranks)};
}

RowShare share(Group& group) {
  const Hosts hosts = hosts_of(group);
  return {.rank = std::max(group.scope_rank(Scope::across), 0),
          .ranks = static_cast<int>(hosts.count),
          .index = static_cast<std::size_t>(group.scope_rank(Scope::host)),
          .count = hosts.places};
}

/// One part for every rank of the host; those beyond the smallest host's stay empty.
Buffer packed_vector(const ExchangeContext& context, const Packing& packing) {
  return packing.memory(context.group, context.group.scope_ranks(Scope::host).size());
}

/// The average over hosts of what this leaves is the average over ranks: where hosts are unequal, a host's average
/// weighs as many ranks as it has.
void narrow(const ExchangeContext& context, const NarrowedTensors& gradients) {
  const Packing packing(gradients);
  const Buffer packed = packed_vector(context, packing);
  packing.pack(gradients.packed.get());
  run(context.group, Collective::reduce_scatter, packed,
      {.op = ReduceOp::average, .name = context.name, .scope = Scope::host});
  const auto index = static_cast<std::size_t>(context.group.scope_rank(Scope::host));
  packing.place(gradients.part, index, gradients.packed.get());
  const std::size_t weight = context.group.scope_ranks(Scope::host).size() * hosts_of(context.group).count;
  const auto ranks = static_cast<std::size_t>(context.group.size());
  if (weight == ranks) return;
  for (const compress::Tensor& tensor : gradients.part)
    kernel::scale(tensor.values.dtype, tensor.values.bytes().data(), tensor.values.count,
                  static_cast<double>(weight) / static_cast<double>(ranks));
}

void widen(const ExchangeContext& context, const NarrowedTensors& gradients) {
  const Packing packing(gradients);
  const Buffer packed = packed_vector(context, packing);
  run(context.group, Collective::allgather, packed, {.name = context.name, .scope = Scope::host});
  packing.unpack(gradients.packed.get());
}

compress::Answer combine(const ExchangeContext& context, const compress::Round& round) {
  return combine_among(Scope::across, context, round);
}

}  // namespace

extern constinit const Exchange hierarchical{
    .name = "hierarchical",
    .summary = "Reduces within hosts, combines each rank's rows across hosts, gathers within hosts",
    .source = "CommLib section 3 (HiTopKComm)",
    .serves = {.additive = true, .gather = true, .scatter = true, .mergeable = true},
    .collectives = kReducing,
    .combine = combine,
    .share = share,
    .narrowing = Narrowing{.narrow = narrow, .widen = widen},
};

}  // namespace syncopate::sync::exchange
