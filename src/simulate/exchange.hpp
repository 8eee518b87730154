// Exchange: one collective in virtual time: the production plans of all ranks on a network whose ports they share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collective/plan/program.hpp"
#include "collective/select/select.hpp"
#include "simulate/network.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::simulate {

/// When each rank has finished, given when each calls, message by message in the order in which they happen.
[[nodiscard]] std::vector<double> run_events(const Network& network,
                                             const std::vector<collective::plan::Program>& programs,
                                             std::uint64_t bytes, const std::vector<double>& called_s);

/// Runs plans by events, or where they give the same by recurrence (simulate/steady). A rank sends one message and
/// receives one at a time; that takes alpha + n beta, and n gamma where it reduces. A message between hosts holds their
/// two ports for its n beta, in the order in which messages begin: ranks of one host share its port, and a slow port
/// slows whoever uses it.
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
  using Key = std::pair<std::string_view, collective::plan::Shape>;
  using Programs = std::vector<collective::plan::Program>;
  const Programs& programs_of(const Call& call);

  Network network_;
  Messages messages_;
  std::map<Key, std::unique_ptr<Programs>> programs_;
};

}  // namespace syncopate::simulate
