// Exchange plans: converts options to those of a synchronizer, and adds the costs of the cluster file.
#include "update/exchange_plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "require.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/tooling/units.hpp"
#include "update/gradients.hpp"

namespace syncopate::train {
namespace {

/// Whether the synchronizer accumulates the momentum of gradients, so that the optimizer adds none.
bool has_momentum_correction(const Options& o) {
  return o.sync.coding.feedback.kind == FeedbackKind::momentum && o.sync.exchange != "none";
}

/// The bound on the averaged gradient; 0 with momentum correction, where averages are velocities and gradients are
/// clipped before.
double global_clip(const Options& o, const Model& model) {
  return o.clip.value_or(has_momentum_correction(o) ? 0 : model.clip);
}

/// Lin et al., section 3.2: a bound on the average of N gradients becomes a bound √N times as large on each. (The
/// paper's factor is 1/√N, for gradients already divided by N: if the ranks' gradients are independent, the average of
/// N gradients of norm g has norm g/√N.)
CodingOptions coding_options(const Options& o, const Model& model, int ranks) {
  CodingOptions coding = o.sync.coding;
  FeedbackOptions& feedback = coding.feedback;
  if (o.momentum) feedback.momentum = *o.momentum;
  feedback.nesterov = o.nesterov;
  if (!o.is_clip_given && has_momentum_correction(o)) feedback.clip_norm = model.clip * std::sqrt(ranks);
  return coding;
}

SynchronizerOptions synchronizer_options(Run& run, const Options& o) {
  SynchronizerOptions options = o.sync;
  options.coding = coding_options(o, run.model, run.place.ranks);
  options.clip_norm = global_clip(o, run.model);
  options.code_ahead = !o.code_inline;
  options.trace = &run.trace;
  return options;
}

/// Throws now the errors that the synchronizer would throw when the part begins.
void require_possible(const Run& run, const std::vector<Gradient>& gradients, SynchronizerOptions exchange) {
  const Cluster here{.ranks = run.place.ranks};
  for (const std::string& way : codec_ways(exchange.coding.codec)) {
    exchange.coding.codec = way;
    static_cast<void>(exchange_law(gradients, exchange, here));
  }
}

/// Chooses for every bucket the cheapest allowed codec, by rank 0's cluster file.
void choose(Run& run, const std::vector<Gradient>& gradients, const Options& o, ExchangePlan& plan) {
  require(!o.cluster.empty(),
          "--codec {} without --cluster; allowed: with the file of `syncopate fit --codec {}`, which has the costs of "
          "codecs",
          o.sync.coding.codec, fmt::join(codec_ways(o.sync.coding.codec), ","));
  Cluster cluster = read_cluster(o.cluster);
  const auto cost_of = [&, file = cluster](const ExchangeLaw& law, std::uint64_t bytes) {
    return exchange_cost(file, run.place.ranks, bytes, law);
  };
  cluster.ranks = run.place.ranks;
  cluster.ranks_per_host = std::min(cluster.ranks_per_host, run.place.ranks);
  plan.codecs = ChosenCodecs(run.group, codec_ways(o.sync.coding.codec),
                             choose_codecs(gradients, plan.options, cluster, cost_of));
  plan.options.coding.codec = "none";
  if (run.place.rank == 0 && !plan.codecs.unused().empty())
    run.output.warn(fmt::format("not chosen for any bucket: codec {}", plan.codecs.unused()));
}

/// Takes the costs of exchanges from the cluster file. A codec that is slower than none by rank 0's file is not used.
void weigh(Run& run, const std::vector<Gradient>& gradients, const Options& o, ExchangePlan& plan) {
  std::uint64_t bytes = 0;
  for (const Gradient& gradient : gradients) bytes += 4 * gradient.elements;
  Cluster cluster = read_cluster(o.cluster);
  const auto cost_of = [&](const SynchronizerOptions& options) {
    cluster.ranks_per_host = std::min(cluster.ranks_per_host, run.place.ranks);
    Cluster here = cluster;
    here.ranks = run.place.ranks;
    return exchange_cost(cluster, run.place.ranks, bytes, exchange_law(gradients, options, here));
  };
  plan.options.cost = cost_of(plan.options);
  if (plan.options.coding.codec == "none") return;
  SynchronizerOptions plain = plan.options;
  plain.coding.codec = "none";
  plain.coding.feedback = {};
  plain.clip_norm = o.clip.value_or(run.model.clip);
  ExchangeCost plain_cost = cost_of(plain);
  std::array<double, 2> seconds{plan.options.cost->table.back().second, plain_cost.table.back().second};
  broadcast(run.group, std::span<double>(seconds), {.name = "predicted exchanges"});
  if (seconds[0] < seconds[1] || o.force) return;
  if (run.place.rank == 0)
    run.output.warn(
        fmt::format("codec {} is not used: exchanging all gradients is predicted to take {} with it and {} without; "
                    "--force uses it anyway",
                    plan.options.coding.codec, format_seconds(seconds[0]), format_seconds(seconds[1])));
  plan.refused_codec = plan.options.coding.codec;
  plain.cost = std::move(plain_cost);
  plan.options = std::move(plain);
}

}  // namespace

ExchangePlan plan_exchange(Run& run, const Network& network, const Options& options) {
  const std::vector<Gradient> gradients = gradients_of(network);
  ExchangePlan plan{.options = synchronizer_options(run, options)};
  if (!options.is_served()) require_possible(run, gradients, plan.options);
  if (!auto_codecs(options.sync.coding.codec).empty()) choose(run, gradients, options, plan);
  if (!options.cluster.empty()) weigh(run, gradients, options, plan);
  plan.corrected = has_momentum_correction(options) && plan.refused_codec.empty();
  return plan;
}

}  // namespace syncopate::train
