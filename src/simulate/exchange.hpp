// Exchange: one collective in virtual time: the production plans of all ranks on a network with shared ports.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collective/select/select.hpp"
#include "simulate/network.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::simulate {

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
  std::map<std::pair<std::string_view, collective::plan::Shape>, Cast> casts_;
};

}  // namespace syncopate::simulate
