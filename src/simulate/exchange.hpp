// Exchange: one collective in virtual time: the production plans of all ranks on a network with shared ports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collective/select/select.hpp"
#include "syncopate/cluster.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/plan.hpp"

namespace syncopate::simulate {

struct Network {
  int ranks = 1;
  int ranks_per_host = 1;  ///< neighbouring ranks share a host
  LinkCost inter, intra;
  std::vector<double> slowness;  ///< by host: factor of its port's time per byte; empty: 1 everywhere

  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept {
    return rank / static_cast<std::uint32_t>(ranks_per_host);
  }
  [[nodiscard]] std::uint32_t hosts() const noexcept { return host_of(static_cast<std::uint32_t>(ranks) - 1) + 1; }
  [[nodiscard]] const LinkCost& link(std::uint32_t from, std::uint32_t to) const noexcept {
    return host_of(from) == host_of(to) ? intra : inter;
  }
  /// Whether all ranks are on one host, or every rank has its own port and all ports are equally fast.
  [[nodiscard]] bool is_uniform() const noexcept { return slowness.empty() && (ranks_per_host == 1 || hosts() == 1); }
  /// The factor of the time per byte between two hosts: that of the slower port.
  [[nodiscard]] double slowness_between(std::uint32_t out, std::uint32_t in) const noexcept {
    return slowness.empty() ? 1 : std::max(slowness[out], slowness[in]);
  }
};

/// Without `intra`, ranks of one host use the link between hosts. Throws Misuse if the cluster has no such link.
[[nodiscard]] Network network_of(const Cluster& cluster);

/// The outgoing and incoming port of every host. A message between hosts holds one of each.
class Ports final {
 public:
  explicit Ports(const Network& network) : out_s_(network.hosts()), in_s_(network.hosts()) {}

  /// Returns when a message that can begin at `begin_s` and takes `taken_s` has passed; it queues for both ports.
  [[nodiscard]] double pass(std::uint32_t out, std::uint32_t in, double begin_s, double taken_s) {
    return out_s_[out] = in_s_[in] = std::max({begin_s, out_s_[out], in_s_[in]}) + taken_s;
  }

 private:
  std::vector<double> out_s_, in_s_;  ///< by host: time from which the port is free
};

/// When each program's rank finishes, given when each calls: the replay of plans (collective/replay) on this network.
/// An ensemble that stands for all ranks by one program needs a uniform network and ranks that call at one time.
[[nodiscard]] std::vector<double> run_replay(const Network& network, const collective::replay::Ensemble& ensemble,
                                             std::uint64_t bytes, const std::vector<double>& called_s);

/// Replays plans, or uses the recurrence of simulate/steady if it gives the same times. A rank sends one message and
/// receives one message at a time. A message takes alpha + n beta, and n gamma if it is reduced. Between hosts it holds
/// both hosts' ports for n beta, in the order in which messages begin, so ranks of one host share its port, and a slow
/// port slows every message through it. Chunks are even parts, as in cost laws.
class Exchanger final {
 public:
  /// Whether messages are whole chunks, as in cost laws, or segments, as in the engine (simulate/segments).
  enum class Messages : std::uint8_t { whole, segments };
  explicit Exchanger(Network network, Messages messages = Messages::whole)
      : network_(std::move(network)), messages_(messages) {}

  struct Call {
    Collective collective = Collective::allreduce;
    std::string algorithm = "auto";
    std::uint64_t bytes = 0;
  };
  /// When each rank finishes, given when each calls. Throws Misuse if the algorithm does not offer the collective.
  [[nodiscard]] std::vector<double> run(const Call& call, const std::vector<double>& called_s);
  /// When the last rank finishes, if all call at 0.
  [[nodiscard]] double run_together(const Call& call);

 private:
  /// The cached data of one shape.
  struct Cast {
    collective::Choice choice;
    collective::replay::Ensemble ensemble;                  ///< with one program if that is enough
    std::map<std::uint64_t, std::vector<double>> together;  ///< by bytes: end on each rank if all call at 0
  };
  Cast& cast_of(const Call& call);
  [[nodiscard]] std::vector<double> play(const Cast& cast, std::uint64_t bytes, const std::vector<double>& called_s);
  const std::vector<double>& together(Cast& cast, std::uint64_t bytes);

  Network network_;
  Messages messages_;
  collective::PortSharing sharing_;
  std::map<std::pair<std::string_view, collective::plan::Shape>, Cast> casts_;
};

}  // namespace syncopate::simulate
