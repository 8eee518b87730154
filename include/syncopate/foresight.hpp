// Foresight: predicted and simulated steps for a codec and an exchange given by name, with warnings about the answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/cluster.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {

/// How the ranks combine gradients.
struct ExchangeChoice {
  std::string codec = "none";          ///< a name from shelf compress/codec, with its parameter: "name:parameter"
  std::string exchange = "allreduce";  ///< a name from shelf sync/exchange
  /// The share of a layer's elements that a codec with a fixed threshold sends; 0, or an empty function: not known.
  std::function<double(const std::string& layer)> density{};
  [[nodiscard]] bool is_plain() const { return codec == "none" && exchange == "allreduce"; }
};

/// The law of the choice for the profile's gradients; empty for a plain all-reduce. A layer of unknown shape counts as
/// the most square matrix. `algorithm`: of the exchange's collectives. Throws Misuse for unknown names, and for an
/// algorithm that the exchange cannot use.
[[nodiscard]] ExchangeLawOf law_of(const ExchangeChoice& choice, const Profile& profile, const Cluster& cluster,
                                   const std::string& algorithm = "auto");

/// A warning where the cluster lacks the codec's times, and one where the share of elements that it sends is assumed.
/// `law`: that of the choice.
[[nodiscard]] std::vector<std::string> warnings_about_law(const ExchangeChoice& choice, const ExchangeLawOf& law);

struct CompareOptions {
  std::vector<std::string> policies;  ///< as PredictOptions::policies
  std::uint64_t fusion_bytes = 0;     ///< as PredictOptions::fusion_bytes
  ExchangeChoice exchange;
  std::string algorithm;     ///< of the all-reduce; empty: the cluster's
  std::optional<int> ranks;  ///< instead of the cluster's; then its links count, not its measured costs
};

/// A phase of an exchange: one of its collectives, or coding.
struct ExchangePhase {
  std::string what;    ///< "reduce_scatter within hosts", "coding"
  double bytes = 0;    ///< of the collective (PlanRequest::bytes), or of the gradients that are coded
  double seconds = 0;  ///< predicted
};

struct ComparedPolicies {
  Cluster cluster;  ///< with the ranks, the algorithm and the costs that were used
  std::vector<Prediction> predictions;
  /// The phases of one exchange of all gradients, in order; empty for a plain all-reduce.
  std::vector<ExchangePhase> phases;
  std::vector<std::string> warnings;  ///< inaccurate links, unknown times of coding, unmeasured sizes
};

/// One prediction per policy. Throws Misuse as predict_policies and law_of do, and for less than one rank.
[[nodiscard]] ComparedPolicies compare_policies(const Profile& profile, Cluster cluster, const CompareOptions& options);

/// The last layer of each bucket, counted from 1 in forward order, ascending.
[[nodiscard]] std::vector<std::size_t> groups_of(const Prediction& prediction);
/// PyTorch's DistributedDataParallel(bucket_cap_mb_list=...), 2.11 and later: MiB at which each bucket closes, in the
/// order of the backward pass. Exact if parameters are registered in forward order.
[[nodiscard]] std::vector<double> ddp_caps(const Prediction& prediction);

struct SimulatedTraining {
  std::vector<Simulation> rows;
  std::vector<std::string> warnings;  ///< as ComparedPolicies::warnings
};

/// simulate_training under the law of this choice, which replaces `options.law`. `algorithm`: of the all-reduce; empty:
/// the cluster's. Throws Misuse as simulate_training and law_of do.
[[nodiscard]] SimulatedTraining simulate_exchange(const Profile& profile, Cluster cluster, SimulateOptions options,
                                                  const ExchangeChoice& choice, const std::string& algorithm = {});

/// The exchange that simulate_servers simulates; it has no law.
inline constexpr char kParameterServer[] = "parameter_server";

struct SimulatedServers {
  std::vector<ServerSimulation> rows;
  std::vector<std::string> warnings;  ///< inaccurate links, unknown times of coding
};

/// simulate_servers with these codecs of the workers' updates and of the servers' answers, whose bytes and times
/// replace those of `scene`. Throws Misuse as simulate_servers does, and for unknown codecs.
[[nodiscard]] SimulatedServers simulate_server_exchange(const Profile& profile, const Cluster& cluster,
                                                        const SimulateOptions& options, ServerScene scene,
                                                        const std::string& updates, const std::string& answers);

}  // namespace syncopate
