// The checks of a combination: those of the synchronizer, of the parameter server's workers, and of the optimizer.
#include "base/require.hpp"
#include "schedule/policy.hpp"
#include "server/job/setup.hpp"
#include "sync/codec_state.hpp"
#include "syncopate/optimizer.hpp"
#include "syncopate/tooling/combinations.hpp"

namespace syncopate {

namespace {

/// A gradient that every codec codes.
constexpr std::size_t kElements = 1 << 16, kRows = 256;

void require_served(const Combination& chosen) {
  const server::Setup setup{.tables = {{.name = "gradient", .elements = kElements, .rows = kRows}},
                            .servers = 2,
                            .consistency = chosen.consistency,
                            .coding = {.codec = chosen.codec, .feedback = {.kind = chosen.feedback}},
                            .optimizer = chosen.optimizer};
  static_cast<void>(server::blocks_of(setup));
}

void require_synchronized(const Combination& chosen) {
  std::vector<float> memory(1);
  SynchronizerOptions options{.coding = {.codec = chosen.codec, .feedback = {.kind = chosen.feedback}},
                              .exchange = chosen.exchange};
  if (!chosen.policy.empty()) options.policy = chosen.policy;
  options.weights = {Buffer(memory.data(), kElements, DType::f32)};  // only its type and length are looked at
  static_cast<void>(schedule::policy_named(options.policy));
  static_cast<void>(sync::checked_settings({{.name = "gradient", .elements = kElements, .rows = kRows}}, options));
}

}  // namespace

void require_policy(const std::string& exchange, const std::string& policy) {
  base::require(exchange != "parameter_server" || policy.empty(),
                "--policy {} has no effect with --exchange {}: tables are not merged, and --flow sets their order; "
                "leave it out",
                policy, exchange);
}

void require_combination(const Combination& combination) {
  if (combination.exchange == "parameter_server")
    require_served(combination);
  else
    require_synchronized(combination);
  require_policy(combination.exchange, combination.policy);
  require_allowed(
      OptimizerOptions{.rule = combination.optimizer, .corrected = combination.feedback == FeedbackKind::momentum});
}

}  // namespace syncopate
