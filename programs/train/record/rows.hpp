// Records of a run (a step, an evaluation, the end), and their JSON rows.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/cache.hpp"
#include "syncopate/codec.hpp"
#include "update/served.hpp"

namespace syncopate::train {

using Json = nlohmann::ordered_json;

/// Times of one step.
struct StepTimes {
  double step_s = 0, forward_s = 0, backward_s = 0, wait_s = 0, optimizer_s = 0;
  double input_s = 0;  ///< waiting for samples
  double slept_s = 0;  ///< sleep that --slow adds
};

struct StepRow {
  std::uint64_t step = 0;         ///< counted from 1
  double epoch = 0;               ///< epochs trained when the step has ended, with a fraction
  double learning_rate = 0;       ///< of the step
  std::size_t part = 0;           ///< of the recipe; 0: there is none
  std::optional<double> loss;     ///< mean over this rank's samples; unset if it had none
  double samples_per_second = 0;  ///< of all ranks
  StepTimes times;
  std::uint64_t wire_bytes = 0;
  std::uint64_t payload_bytes = 0;    ///< 0: none was encoded
  std::optional<double> predicted_s;  ///< the time of the step, as predicted before it began
  bool measuring = false;             ///< the step ran under a partition that only measures
};

struct Evaluation {
  double loss = 0;                       ///< mean over held-out samples (text: nats per byte)
  std::optional<double> accuracy;        ///< images only
  std::optional<double> top_5_accuracy;  ///< images of more than five classes only
};

/// The share of a gradient that its codec sent in the steps since the last evaluation.
struct SentRow {
  std::string gradient;
  std::size_t elements = 0;
  double density = 0;               ///< mean share of the elements
  double threshold = 0;             ///< of the last step; 0: the codec has none
  double spread = 0;                ///< variance over mean of the importance; 0: not known
  double proposed = 0;              ///< sum of the densities of all ranks' masks; 0: the codec has none
  compress::Octaves importances{};  ///< elements by importance in one of the steps; zeros: not known
};

struct EndRow {
  std::uint64_t steps = 0;
  std::vector<StepRow> rows;  ///< of every step of this process
  std::optional<Evaluation> evaluation;
  std::string digest;
  std::optional<Served> served;          ///< with a parameter server
  std::vector<cache::Counters> tiers{};  ///< by epoch, with a cache
  int signal = 0;                        ///< signal that ended the run before its last step
};

/// Median, min, max and number of the values; the first three are null if n is 0.
[[nodiscard]] Json summary_of(std::vector<double> values);

/// Numbers of an epoch's samples by source, as text.
[[nodiscard]] std::string text_of(const cache::Counters& row);
[[nodiscard]] std::string text_of(const Evaluation& evaluation);

void add_values(Json& row, const Evaluation& evaluation);
[[nodiscard]] Json row_of(const StepRow& row);
[[nodiscard]] Json row_of(const SentRow& row);
[[nodiscard]] Json row_of(const EndRow& end, int rank);

}  // namespace syncopate::train
