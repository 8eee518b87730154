// Hierarchical: reduce within every host, all-reduce between hosts, broadcast within every host, by any algorithm.
// CommLib paper section 3 (hierarchical communication); Karonis et al., "Exploiting hierarchy in parallel
// computer networks", IPDPS 2000.
//
//   hosts {0 1 2} {3 4}:   inner offers reduce-scatter and all-gather (ring):   0 1 of host A and 3 4 of host B own a
//                          part each and all-reduce it with their counterpart; 2 owns none: an extra rank of 0
//                          inner offers reduce and broadcast (mst, pipelines):  to the leaders 0 and 3, between, back
//                          inner offers only all-reduce:                        all-reduce, between leaders, mst back
#include <limits>

#include "collective/part.hpp"

namespace syncopate::collective::algorithm {
using plan::HostTopology;
namespace {

bool offers(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::broadcast || collective == Collective::reduce;
}

/// The collectives within a host before and after the exchange between hosts; they depend on what `inner` offers.
struct Form {
  Collective first = Collective::allreduce, last = Collective::broadcast;
  std::string_view first_by, last_by;
  [[nodiscard]] bool cuts() const { return first == Collective::reduce_scatter; }
};

Form form_of(const Shape& shape, const Algorithm& inner) {
  if (shape.collective != Collective::allreduce) return {shape.collective, shape.collective, inner.name, inner.name};
  if (inner.offers(Collective::reduce_scatter) && inner.offers(Collective::allgather))
    return {Collective::reduce_scatter, Collective::allgather, inner.name, inner.name};
  if (inner.offers(Collective::reduce) && inner.offers(Collective::broadcast))
    return {Collective::reduce, Collective::broadcast, inner.name, inner.name};
  return {Collective::allreduce, Collective::broadcast, inner.name, "mst"};
}

/// The vector is cut among the first `parts` ranks of each host; the host's other ranks are their extra ranks.
Plan build_cut(const Shape& shape, const HostTopology& topology, const Form& form) {
  const std::uint32_t parts = topology.smallest(), hosts = topology.hosts(), at = topology.place();
  const SubPlan between{shape.outer, Collective::allreduce, hosts, 0, shape.outer_blocks};
  const std::uint32_t fine = hosts == 1 ? 1 : plan_of(between, 0).chunks;
  Plan plan{.chunks = parts * fine, .steps = {}};
  const pattern::ExtraRanks extras{parts, static_cast<std::uint32_t>(topology.local().size())};
  const plan::Embedding local{.ranks = topology.local(), .scale = plan.chunks, .completes = hosts == 1};
  Plan fold, unfold;
  const bool is_extra = plan::fold_extra_ranks(fold, extras, at);
  plan::unfold_extra_ranks(unfold, extras, at);
  plan::embed(plan, fold, local);
  if (!is_extra) {
    add_sub_plan(plan, {form.first_by, form.first, parts, 0, shape.blocks}, at, local);
    add_sub_plan(plan, between, topology.own_host(),
                 {.ranks = topology.peers_at(at), .first = at * fine, .scale = fine});
    add_sub_plan(plan, {form.last_by, form.last, parts, 0, shape.blocks}, at, local);
  }
  plan::embed(plan, unfold, local);
  return plan;
}

Plan build_leaders(const Shape& shape, const HostTopology& topology, const Form& form) {
  const auto size = static_cast<std::uint32_t>(topology.local().size());
  const SubPlan between{shape.outer, shape.collective, topology.hosts(), topology.root_host(), shape.outer_blocks};
  const SubPlan first{form.first_by, form.first, size, topology.local_leader(), shape.blocks};
  const SubPlan last{form.last_by, form.last, size, topology.local_leader(), shape.blocks};
  Plan plan{.chunks = common_chunks(topology, between, {first, last}), .steps = {}};
  const plan::Embedding local{.ranks = topology.local(), .scale = plan.chunks, .completes = topology.hosts() == 1};
  if (shape.collective != Collective::broadcast) add_sub_plan(plan, first, topology.place(), local);
  if (topology.is_leader())
    add_sub_plan(plan, between, topology.own_host(), {.ranks = topology.leaders(), .scale = plan.chunks});
  const bool has_all = topology.hosts() == 1 && form.first == Collective::allreduce;
  if (shape.collective != Collective::reduce && !has_all) add_sub_plan(plan, last, topology.place(), local);
  return plan;
}

Plan build(const Shape& shape) {
  const HostTopology topology(shape);
  const Form form = form_of(shape, entry_named(shape.inner));
  return form.cuts() ? build_cut(shape, topology, form) : build_leaders(shape, topology, form);
}

/// Seconds inside hosts; sets shape.blocks if it is 0.
double seconds_within(Shape& shape, const HostTopology& topology, const Load& load) {
  const Form form = form_of(shape, entry_named(shape.inner));
  const LinkCost& link = load.local;
  const Load local{load.bytes, link, link};
  const std::uint32_t size = form.cuts() ? topology.smallest() : topology.largest();
  const auto part = [&](std::string_view name, Collective collective) {
    return choose_part(name, {.collective = collective, .size = size}, {.blocks = shape.blocks}, local);
  };
  const Choice first = part(form.first_by, form.first);
  if (shape.blocks == 0) shape.blocks = std::max(first.shape.blocks, 1U);
  const double extra_ranks = form.cuts() ? (topology.largest() - 1) / size : 0;
  const double folding = 2 * (link.alpha_s + load.bytes * link.beta_s_per_byte) + load.bytes * link.gamma_s_per_byte;
  const double last_s = shape.collective == Collective::allreduce ? part(form.last_by, form.last).law_s : 0;
  return first.law_s + last_s + extra_ranks * folding;
}

Choice between(const Shape& shape, const HostTopology& topology, std::string_view name, const Load& load) {
  const double parts = form_of(shape, entry_named(shape.inner)).cuts() ? topology.smallest() : 1;
  return choose_part(name, {.collective = shape.collective, .size = topology.hosts()}, {.blocks = shape.outer_blocks},
                     {load.bytes / parts, load.link, load.link});
}

void resolve_inner(Shape& shape, const HostTopology& topology, const Tuning& tuning, const Load& load) {
  double least = std::numeric_limits<double>::infinity();
  Shape best = shape;
  for (const Algorithm* entry : algorithms()) {
    const bool all = tuning.inner == "auto" && form_of(shape, *entry).first != Collective::allreduce;
    if (entry->composed || !entry->offers(shape.collective) || (!all && entry->name != tuning.inner)) continue;
    Shape candidate = shape;
    candidate.inner = entry->name, candidate.blocks = tuning.blocks;
    const double seconds = seconds_within(candidate, topology, load);
    if (seconds < least) least = seconds, best = std::move(candidate);
  }
  if (best.inner.empty()) static_cast<void>(choose_part(tuning.inner, {.collective = shape.collective}, {}, {}));
  shape = std::move(best);
}

void resolve(Shape& shape, const Tuning& tuning, const Load& load) {
  const HostTopology topology(shape);
  resolve_inner(shape, topology, tuning, load);
  shape.outer_blocks = tuning.blocks;
  const Choice outer = between(shape, topology, tuning.outer, load);
  shape.outer = outer.algorithm->name;
  shape.outer_blocks = std::max(outer.shape.blocks, 1U);
}

bool sensible(const Shape& shape) { return !shape.hosts.empty() && HostTopology(shape).largest() > 1; }

// The laws of `inner` on the ranks of a host, plus the law of `outer` on the hosts: for the whole vector, or for one
// rank's part if each rank of a host owns a part. A rank without a part sends and receives whole vectors.
double seconds(const Shape& shape, const Load& load) {
  const HostTopology topology(shape);
  Shape inner = shape;
  return seconds_within(inner, topology, load) + between(shape, topology, shape.outer, load).law_s;
}

}  // namespace

extern constinit const Algorithm hierarchical{
    .name = "hierarchical",
    .summary = "Within hosts, between hosts, within hosts: any algorithm for each; fewest bytes between hosts",
    .source = "CommLib paper section 3; Karonis et al. 2000",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .resolve = resolve,
    .sensible = sensible,
    .composed = true,
};

}  // namespace syncopate::collective::algorithm
