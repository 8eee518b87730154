// Combinations: which exchanges, codecs, kinds of feedback, policies and optimizers do not work together, and why.
#pragma once

#include <string>
#include <vector>

#include "syncopate/feedback.hpp"

namespace syncopate {

/// The names that a training job combines.
struct Combination {
  std::string exchange = "allreduce";  ///< a name from shelf sync/exchange, or "parameter_server"
  std::string codec = "topk";
  FeedbackKind feedback = FeedbackKind::automatic;
  std::string policy{};  ///< empty: the exchange's own order of messages
  std::string optimizer = "momentum";
  std::string consistency = "bsp";  ///< of parameter_server
};

/// Throws the Misuse that a Synchronizer or TableWorker and an Optimizer of these options throw before the first step.
void require_combination(const Combination& combination);
/// Throws Misuse for a policy that is not empty with exchange parameter_server, which forms no buckets.
void require_policy(const std::string& exchange, const std::string& policy);

/// Names that do not work together, whatever the others are, although any fewer of them do. A list that is empty means
/// any name; one of several, each of them.
struct Exclusion {
  std::vector<std::string>
      exchanges;  ///< "parameter_server", or under one consistency model "parameter_server under ssp"
  std::vector<std::string> codecs, feedbacks, policies, optimizers;
  std::string reason;  ///< of the error message
};
/// Every combination of the library's names that require_combination refuses contains one of these exclusions, and no
/// other combination does.
[[nodiscard]] std::vector<Exclusion> exclusions();

}  // namespace syncopate
