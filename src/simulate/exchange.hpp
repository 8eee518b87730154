// Exchange: one collective in virtual time: the production plans of all ranks on a network whose ports they share.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collective/select/select.hpp"
#include "simulate/network.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::simulate {

/// When each program's rank has finished, given when each calls: the replay of plans (collective/replay) in this
/// network's time. An ensemble that rotates needs a uniform network, and stands for ranks that call together.
[[nodiscard]] std::vector<double> run_replay(const Network& network, const collective::replay::Ensemble& ensemble,
                                             std::uint64_t bytes, const std::vector<double>& called_s);

/// Plays plans by replay, or where they give the same by recurrence (simulate/steady). A rank sends one message and
/// receives one at a time; that takes alpha + n beta, and n gamma where it reduces. A message between hosts holds their
/// two ports for its n beta, in the order in which messages begin: ranks of one host share its port, and a slow port
/// slows whoever uses it. Chunks are even parts, as in cost laws.
class Exchanger final {
 public:
  /// Whole chunks, as cost laws have them, or cut into segments as the engine does (simulate/segments).
  enum class Messages : std::uint8_t { whole, segments };
  explicit Exchanger(Network network, Messages messages = Messages::whole)
      : network_(std::move(network)), messages_(messages) {}

  struct Call {
    Collective collective = Collective::allreduce;
    std::string algorithm = "auto";
    std::uint64_t bytes = 0;
  };
  /// When each rank has finished, given when each calls. Throws Misuse (an algorithm that does not offer it).
  [[nodiscard]] std::vector<double> run(const Call& call, const std::vector<double>& called_s);

 private:
  /// All that is kept of one shape.
  struct Cast {
    collective::Choice choice;
    collective::replay::Ensemble ensemble;                  ///< one program where that is enough, else of all ranks
    std::map<std::uint64_t, std::vector<double>> together;  ///< by bytes: ends where all call at 0
  };
  Cast& cast_of(const Call& call);
  [[nodiscard]] std::vector<double> play(const Cast& cast, std::uint64_t bytes, const std::vector<double>& called_s);
  const std::vector<double>& together(Cast& cast, std::uint64_t bytes);

  Network network_;
  Messages messages_;
  std::map<std::pair<std::string_view, collective::plan::Shape>, Cast> casts_;
};

}  // namespace syncopate::simulate
