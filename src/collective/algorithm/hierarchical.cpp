// Hierarchical: reduce within every host, all-reduce between hosts, spread within every host; any algorithm for each.
// CommLib paper section 3 (hierarchical communication); Karonis et al., "Exploiting hierarchy in parallel computer
// networks", IPDPS 2000.
//
//   hosts {0 1 2} {3 4}:   inner offers reduce-scatter and all-gather (ring):    0 1 of host A and 3 4 of host B own a
//                          part each and all-reduce it with their counterpart; 2, who has none, is a guest of 0
//                          inner offers reduce and broadcast (mst, pipelines):   to the leaders 0 and 3, between, back
//                          inner offers only all-reduce:                         all-reduce, between leaders, mst back
#include <limits>

#include "collective/layers.hpp"

namespace syncopate::collective::algorithm {
namespace {

bool offers(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::broadcast || collective == Collective::reduce;
}

/// What the ranks of a host do first and last, by what the inner algorithm offers.
struct Form {
  Collective first = Collective::allreduce, last = Collective::broadcast;
  std::string_view first_by, last_by;
  [[nodiscard]] bool shards() const { return first == Collective::reduce_scatter; }
};

Form form_of(const Shape& shape, const Algorithm& inner) {
  if (shape.collective != Collective::allreduce) return {shape.collective, shape.collective, inner.name, inner.name};
  if (inner.offers(Collective::reduce_scatter) && inner.offers(Collective::allgather))
    return {Collective::reduce_scatter, Collective::allgather, inner.name, inner.name};
  if (inner.offers(Collective::reduce) && inner.offers(Collective::broadcast))
    return {Collective::reduce, Collective::broadcast, inner.name, inner.name};
  return {Collective::allreduce, Collective::broadcast, inner.name, "mst"};
}

/// The ranks that own a part share it among `shards` of their host; ranks beyond are their guests.
Plan build_shards(const Shape& shape, const Layers& layers, const Form& form) {
  const std::uint32_t shards = layers.smallest(), hosts = layers.hosts(), at = layers.place();
  const Part between{shape.outer, Collective::allreduce, hosts, 0, shape.outer_blocks};
  const std::uint32_t fine = hosts == 1 ? 1 : plan_of(between, 0).chunks;
  Plan plan{.chunks = shards * fine, .steps = {}};
  const pattern::Guests guests{shards, static_cast<std::uint32_t>(layers.local().size())};
  const Embedding local{.ranks = layers.local(), .scale = plan.chunks, .completes = hosts == 1};
  Plan fold, unfold;
  const bool is_guest = fold_guests(fold, guests, at);
  unfold_guests(unfold, guests, at);
  embed(plan, fold, local);
  if (!is_guest) {
    add_part(plan, {form.first_by, form.first, shards, 0, shape.blocks}, at, local);
    add_part(plan, between, layers.own_host(), {.ranks = layers.peers_at(at), .first = at * fine, .scale = fine});
    add_part(plan, {form.last_by, form.last, shards, 0, shape.blocks}, at, local);
  }
  embed(plan, unfold, local);
  return plan;
}

Plan build_leaders(const Shape& shape, const Layers& layers, const Form& form) {
  const auto size = static_cast<std::uint32_t>(layers.local().size());
  const Part between{shape.outer, shape.collective, layers.hosts(), layers.root_host(), shape.outer_blocks};
  const Part first{form.first_by, form.first, size, layers.local_leader(), shape.blocks};
  const Part last{form.last_by, form.last, size, layers.local_leader(), shape.blocks};
  Plan plan{.chunks = layers.common_chunks(between, {first, last}), .steps = {}};
  const Embedding local{.ranks = layers.local(), .scale = plan.chunks, .completes = layers.hosts() == 1};
  if (shape.collective != Collective::broadcast) add_part(plan, first, layers.place(), local);
  if (layers.is_leader()) add_part(plan, between, layers.own_host(), {.ranks = layers.leaders(), .scale = plan.chunks});
  const bool has_all = layers.hosts() == 1 && form.first == Collective::allreduce;
  if (shape.collective != Collective::reduce && !has_all) add_part(plan, last, layers.place(), local);
  return plan;
}

Plan build(const Shape& shape) {
  const Layers layers(shape);
  const Form form = form_of(shape, entry_named(shape.inner));
  return form.shards() ? build_shards(shape, layers, form) : build_leaders(shape, layers, form);
}

/// Seconds within hosts; sets shape.blocks where it is 0.
double seconds_within(Shape& shape, const Layers& layers, const Load& load) {
  const Form form = form_of(shape, entry_named(shape.inner));
  const Load local{load.bytes, load.local, load.local};
  const std::uint32_t size = form.shards() ? layers.smallest() : layers.largest();
  const auto part = [&](std::string_view name, Collective collective) {
    return choose_part(name, {.collective = collective, .size = size}, {.blocks = shape.blocks}, local);
  };
  const Choice first = part(form.first_by, form.first);
  if (shape.blocks == 0) shape.blocks = std::max(first.shape.blocks, 1U);
  const LinkCost& link = load.local;
  const double guests = form.shards() ? (layers.largest() - 1) / size : 0;
  const double folding = 2 * (link.alpha_s + load.bytes * link.beta_s_per_byte) + load.bytes * link.gamma_s_per_byte;
  const bool once = shape.collective != Collective::allreduce;
  return first.law_s + (once ? 0 : part(form.last_by, form.last).law_s) + guests * folding;
}

Choice between(const Shape& shape, const Layers& layers, std::string_view name, const Load& load) {
  const bool shards = form_of(shape, entry_named(shape.inner)).shards();
  const double bytes = shards ? load.bytes / layers.smallest() : load.bytes;
  return choose_part(name, {.collective = shape.collective, .size = layers.hosts()}, {.blocks = shape.outer_blocks},
                     {bytes, load.link, load.link});
}

void settle_inner(Shape& shape, const Layers& layers, const Tuning& tuning, const Load& load) {
  double least = std::numeric_limits<double>::infinity();
  Shape best = shape;
  for (const Algorithm* entry : algorithms()) {
    const bool all = tuning.inner == "auto" && form_of(shape, *entry).first != Collective::allreduce;
    if (entry->composed || !entry->offers(shape.collective) || (!all && entry->name != tuning.inner)) continue;
    Shape candidate = shape;
    candidate.inner = entry->name;
    candidate.blocks = tuning.blocks;
    const double seconds = seconds_within(candidate, layers, load);
    if (seconds < least) least = seconds, best = std::move(candidate);
  }
  if (best.inner.empty()) static_cast<void>(choose_part(tuning.inner, {.collective = shape.collective}, {}, {}));
  shape = std::move(best);
}

void settle(Shape& shape, const Tuning& tuning, const Load& load) {
  const Layers layers(shape);
  settle_inner(shape, layers, tuning, load);
  shape.outer_blocks = tuning.blocks;
  const Choice outer = between(shape, layers, tuning.outer, load);
  shape.outer = outer.algorithm->name;
  shape.outer_blocks = std::max(outer.shape.blocks, 1U);
}

bool sensible(const Shape& shape) { return !shape.hosts.empty() && Layers(shape).largest() > 1; }

// The inner algorithm's two laws on the ranks of a host, and between them the outer one's on the hosts: for the whole
// vector, or for a part of it where each rank of a host has one. A rank without a part gives and takes whole vectors.
double seconds(const Shape& shape, const Load& load) {
  const Layers layers(shape);
  Shape inner = shape;
  return seconds_within(inner, layers, load) + between(shape, layers, shape.outer, load).law_s;
}

}  // namespace

extern constinit const Algorithm hierarchical{
    .name = "hierarchical",
    .summary = "Within hosts, between hosts, within hosts: any algorithm for each; fewest bytes between hosts",
    .source = "CommLib paper section 3; Karonis et al. 2000",
    .offers = offers,
    .build = build,
    .seconds = seconds,
    .settle = settle,
    .sensible = sensible,
    .composed = true,
};

}  // namespace syncopate::collective::algorithm
