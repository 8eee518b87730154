// Exchange: the time of a message on the network, and the part of an exchange that must be replayed.
#include "simulate/exchange.hpp"

#include <algorithm>

#include "base/require.hpp"
#include "collective/replay/replay.hpp"
#include "simulate/segments.hpp"
#include "simulate/steady.hpp"

namespace syncopate::simulate {

Network network_of(const Cluster& cluster) {
  base::require(cluster.inter.has_value(),
                "messages need a link between hosts, but the cluster has none; add \"inter\"");
  return {.ranks = cluster.ranks,
          .ranks_per_host = cluster.ranks_per_host,
          .inter = *cluster.inter,
          .intra = cluster.intra.value_or(*cluster.inter),
          .slowness = {}};
}

std::vector<double> run_replay(const Network& network, const collective::replay::Ensemble& ensemble,
                               std::uint64_t bytes, const std::vector<double>& called_s) {
  Ports ports(network);
  const double chunk = static_cast<double>(bytes) / ensemble.programs[0].plan.chunks;
  const auto end_of = [&](const collective::replay::Message& message) {
    const PlanStep& arrival = message.arrival;
    const std::uint32_t out = network.host_of(arrival.peer), in = network.host_of(message.to);
    const LinkCost& link = network.link(arrival.peer, message.to);
    const double size = chunk * arrival.chunk_count, taken_s = size * link.beta_s_per_byte;
    const double reduce_s = arrival.act == Act::receive_reduce ? size * link.gamma_s_per_byte : 0;
    const double begin_s = message.begin + link.alpha_s;
    if (out == in) return begin_s + taken_s + reduce_s;
    return ports.pass(out, in, begin_s, taken_s * network.slowness_between(out, in)) + reduce_s;
  };
  collective::replay::Replay run = collective::replay::run(ensemble, {.end_of = end_of, .called = called_s});
  base::require(run.stuck.empty(), "a plan of {} ranks does not end: {}", ensemble.ranks, run.stuck);
  return std::move(run.ended);
}

Exchanger::Cast& Exchanger::cast_of(const Call& call) {
  const PlanRequest request{.collective = call.collective,
                            .algorithm = call.algorithm,
                            .ranks = network_.ranks,
                            .bytes = call.bytes,
                            .ranks_per_host = static_cast<std::uint32_t>(network_.ranks_per_host)};
  const collective::Choice choice = collective::select::choose(request, {network_.inter, network_.intra}, sharing_);
  const auto [known, is_first] = casts_.try_emplace({choice.algorithm->name, choice.shape});
  if (!is_first) return known->second;
  const bool may_rotate = messages_ == Messages::whole && network_.is_uniform();
  const collective::replay::Plans plans = collective::plans_of(choice);
  known->second = {choice, may_rotate ? ensemble_of(plans) : whole_ensemble_of(plans), {}};
  return known->second;
}

std::vector<double> Exchanger::play(const Cast& cast, std::uint64_t bytes, const std::vector<double>& called_s) {
  if (messages_ == Messages::segments) return run_segments(network_, cast.ensemble, bytes, called_s);
  if (is_steady(network_, cast.ensemble)) return run_steady(network_, cast.ensemble, bytes, called_s);
  return run_replay(network_, cast.ensemble, bytes, called_s);
}

const std::vector<double>& Exchanger::together(Cast& cast, std::uint64_t bytes) {
  const auto [known, is_first] = cast.together.try_emplace(bytes);
  if (is_first) known->second = play(cast, bytes, std::vector<double>(cast.ensemble.programs.size(), 0.0));
  return known->second;
}

std::vector<double> Exchanger::run(const Call& call, const std::vector<double>& called_s) {
  base::require(called_s.size() == static_cast<std::size_t>(network_.ranks), "{} ranks call; the network has {}",
                called_s.size(), network_.ranks);
  Cast& cast = cast_of(call);
  const auto [first, last] = std::ranges::minmax_element(called_s);
  if (cast.ensemble.rotates() && *first < *last && !leaves_together(cast.ensemble))
    cast = {cast.choice, whole_ensemble_of(collective::plans_of(cast.choice)), {}};
  const bool is_one = cast.ensemble.rotates();
  if (!is_one && *first < *last) return play(cast, call.bytes, called_s);
  const std::vector<double>& ends_s = together(cast, call.bytes);
  std::vector<double> left_s(called_s.size(), *last);
  for (std::size_t rank = 0; rank < left_s.size(); ++rank) left_s[rank] += ends_s[is_one ? 0 : rank];
  return left_s;
}

double Exchanger::run_together(const Call& call) {
  return std::ranges::max(run(call, std::vector<double>(static_cast<std::size_t>(network_.ranks), 0.0)));
}

}  // namespace syncopate::simulate
