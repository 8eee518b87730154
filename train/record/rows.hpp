// What a run says, as values: a step, an evaluation, the end; and these as the JSON rows of the contract.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/cache.hpp"
#include "update/served.hpp"

namespace syncopate::train {

using Json = nlohmann::ordered_json;

/// Where one step's time went.
struct StepTimes {
  double step_s = 0, forward_s = 0, backward_s = 0, wait_s = 0, optimizer_s = 0;
  double input_s = 0;  ///< waiting for samples
  double slept_s = 0;  ///< as --slow asks for
};

struct StepRow {
  std::uint64_t step = 0;         ///< counted from 1
  double epoch = 0;               ///< epochs trained when the step has ended, with a fraction
  double learning_rate = 0;       ///< of the step
  std::size_t part = 0;           ///< of the recipe; 0: there is none
  std::optional<double> loss;     ///< mean over this rank's samples; none where it had none
  double samples_per_second = 0;  ///< of all ranks
  StepTimes times;
  std::uint64_t wire_bytes = 0;
  std::optional<double> predicted_s;  ///< the step, predicted before it began
  bool measuring = false;             ///< it ran under a partition that only measures
};

struct Evaluation {
  double loss = 0;                 ///< mean over held-out samples (text: nats per byte)
  std::optional<double> accuracy;  ///< images only
};

struct EndRow {
  std::uint64_t steps = 0;
  std::vector<StepRow> rows;  ///< of every step of this process
  std::optional<Evaluation> evaluation;
  std::string digest;
  std::optional<Served> served;          ///< where the weights are
  std::vector<cache::Counters> tiers{};  ///< by epoch, with a cache
  int signal = 0;                        ///< that ended the run before its last step
};

/// Median, min, max and number of what was measured; the first three are null where n is 0.
[[nodiscard]] Json summary_of(std::vector<double> values);

/// Where an epoch's samples came from, for people.
[[nodiscard]] std::string text_of(const cache::Counters& row);
[[nodiscard]] std::string text_of(const Evaluation& evaluation);

[[nodiscard]] Json row_of(const StepRow& row);
[[nodiscard]] Json row_of(const EndRow& end, int rank);

}  // namespace syncopate::train
