// Rows of training steps: measurements of the ranks, their share of the ceiling, and their distance to the bound.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::tools::bench {

/// One way to train. The ceiling is exchange "none": ranks that do not communicate.
struct StepVariant {
  std::string policy = "fusion", codec = "none", exchange = "allreduce";
  std::string contender = "syncopate";  ///< who trains: this program's own training, or PyTorch, which has no policy
  [[nodiscard]] bool is_own() const { return contender == "syncopate"; }
  [[nodiscard]] bool is_ceiling() const { return exchange == "none"; }
  [[nodiscard]] std::string text() const;
};

/// Rows of a variant's ranks over all rounds. Seconds are rank 0's, of single steps.
class Steps final {
 public:
  explicit Steps(int warmup) : warmup_(warmup) {}  ///< steps of a round that do not count
  void begin_round() { rates_.push_back(0); }
  /// Takes a line of a rank's output; a line that is not a row of a step or of an end is ignored.
  void take(const std::string& line, int rank);

  /// Over all ranks: the sum of 1 / (a rank's median step); the median over the rounds. If ranks share cores some are
  /// faster than others, which a median over ranks hides.
  [[nodiscard]] double steps_per_second() const;
  /// The step of ranks that are equally fast and together as fast as these, by round.
  [[nodiscard]] std::vector<double> even_steps(int ranks) const;

  std::vector<double> step, forward, backward, wait, optimizer;
  std::vector<double> predicted;  ///< from what the same job's first steps took
  std::uint64_t wire_bytes = 0;   ///< of one step; 0: not known, as wait and predicted are then
  std::uint64_t gradient_bytes = 0;
  std::uint64_t state_bytes = 0;  ///< of the optimizer on rank 0; 0: not known

 private:
  int warmup_;
  std::vector<double> rates_;  ///< by round: steps per second of all ranks
};

/// No step can be faster than ranks that do not communicate, nor than their forward pass, the time of its bytes on a
/// full wire, and their optimizer, one after the other: bytes cannot travel before they are made.
struct StepBound {
  double alone_s = 0;      ///< step of ranks that do not communicate
  double forward_s = 0;    ///< of the same
  double optimizer_s = 0;  ///< of the same
  double wire_s = 0;
  [[nodiscard]] double seconds() const;
};

/// The network under a step benchmark.
struct StepNetwork {
  int ranks = 1;
  int ranks_per_host = 1;
  double bits_per_s = 0;  ///< of one host's port; 0: not known
};

/// The bound of an exchange that combines gradients; unset for others and if the rate is not known. Dense gradients
/// take 2(M-1)/M S/BW x 1.047 between M hosts; coded ones the bytes that a rank sent, which are unknown if several
/// ranks share a host.
[[nodiscard]] std::optional<StepBound> bound_of(const StepVariant& variant, const Steps& steps, const Steps& ceiling,
                                                const StepNetwork& network);
[[nodiscard]] nlohmann::json row_of(const StepVariant& variant, const Steps& steps, const Steps& ceiling,
                                    const StepNetwork& network);
/// The heads of the columns; then one line for each variant.
[[nodiscard]] std::string heads_of_steps();
[[nodiscard]] std::string line_of(const StepVariant& variant, const Steps& steps, const Steps& ceiling,
                                  const StepNetwork& network);

}  // namespace syncopate::tools::bench
