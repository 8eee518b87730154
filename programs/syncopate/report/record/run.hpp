// The record of a training run as values: configuration, rows of every rank, spans of the traced step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/trace.hpp"

namespace syncopate::tools::report::record {

/// "Not recorded", for numbers: NaN, so that it survives arithmetic and draws as a gap.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Layer {
  std::string name;
  std::uint64_t elements = 0;
};

/// The gradients of layers [first, last] (forward order, from 0) travel together.
struct Bucket {
  std::size_t first = 0, last = 0;
  std::uint64_t bytes = 0;
  std::string codec{};  ///< its own, where one was chosen for every bucket
};

/// Epochs of a recipe with settings of their own.
struct Part {
  double number = 0;                        ///< counted from 1
  double first_epoch = 0, epochs = 0;       ///< the first of all epochs is 0
  double resolution = kUnknown, batch = 0;  ///< pixels; samples of a rank and step
  double first_rate = kUnknown, last_rate = kUnknown;
  std::string codec, exchange;
};

struct Step {
  double step = 0;
  double part = kUnknown;  ///< of the recipe
  double time = kUnknown;  ///< when it ended, in seconds since the Unix epoch
  double loss = kUnknown, samples_per_second = kUnknown, wait_share = kUnknown;
  double step_s = kUnknown, input_s = kUnknown, forward_s = kUnknown, backward_s = kUnknown, wait_s = kUnknown,
         optimizer_s = kUnknown;
  double wire_bytes = kUnknown;
  double predicted_s = kUnknown;  ///< the step, predicted before it began
  bool measuring = false;         ///< it ran under a partition that only measures
};

/// The share of a gradient that a codec sent in the steps since the evaluation before.
struct SentGradient {
  std::string gradient;
  double elements = 0, density = kUnknown;
  double threshold = kUnknown, spread = kUnknown;  ///< of codecs that select by importance
};
/// The gradients that an evaluation's row lists; none if its codec sends all elements.
[[nodiscard]] std::vector<SentGradient> sent_of(const nlohmann::json& row);
/// The share of all elements of these gradients that was sent; kUnknown of none.
[[nodiscard]] double density_of(const std::vector<SentGradient>& gradients);

/// One evaluation; `step` is the last step before it.
struct Evaluation {
  double step = 0, epoch = kUnknown, accuracy = kUnknown, loss = kUnknown;
  std::vector<SentGradient> sent{};  ///< of codecs that select elements
  double top_5_accuracy = kUnknown;
};

/// Seconds over `n` steps.
struct Spread {
  double median = kUnknown, min = kUnknown, max = kUnknown, n = 0;
};

/// Samples that came from one tier of a data cache.
struct Tier {
  double records = 0, bytes = 0;
};

/// Where the samples of an epoch came from.
struct InputEpoch {
  double epoch = 0;  ///< from 0
  Tier memory, disk, peers, origin;
  double damaged = 0;  ///< records on disk that were read again from the origin
};

/// A server at the end of the run: bytes of weights, and bodies of messages of all workers.
struct ServerRecord {
  std::string address;
  double kept_bytes = kUnknown, received_bytes = kUnknown, sent_bytes = kUnknown;
};

/// A worker of a parameter server: how old the weights of its steps were, in steps, and the bodies of its messages.
struct Served {
  double most_stale = kUnknown, mean_stale = kUnknown;
  double pushed_bytes = kUnknown, pulled_bytes = kUnknown;
  double reconnections = kUnknown;
  std::vector<ServerRecord> servers{};  ///< worker 0 only
};

struct End {
  double steps = kUnknown;
  Spread step_seconds;
  double forward_seconds = kUnknown, wire_bytes_per_step = kUnknown;
  std::string digest;
  std::vector<InputEpoch> input{};  ///< with a data cache only
  std::optional<Served> served{};
};

/// Everything one rank wrote. Without `end` the rank did not finish.
struct RankRecord {
  bool present = false;  ///< its rows exist
  bool torn = false;     ///< they end in the middle of a row
  std::vector<Step> steps;
  std::vector<Evaluation> evaluations;
  std::optional<End> end;
  double last_time = kUnknown;  ///< of its last row, in seconds since the Unix epoch
  std::string error;            ///< text of its error row, if it wrote one
  std::vector<Span> spans;      ///< the traced step, without exchanges where ranks trained alone; empty: no trace
  std::vector<Span> planned;    ///< its exchanges as they were predicted
  bool has_bad_spans = false;   ///< spans that do not begin and then end were left out
};

struct Run {
  nlohmann::json configuration;  ///< run.json as it is
  std::vector<Part> parts{};     ///< of the recipe; without one none
  std::string model, exchange;
  bool emulated_compute = false;
  double batch = kUnknown, gradient_bytes = kUnknown;
  double start_time = kUnknown;  ///< seconds since the Unix epoch
  double duration_s = kUnknown;  ///< of a run that did not end: until its last row
  std::vector<Layer> layers;
  std::vector<Bucket> buckets;  ///< in the order of their exchange
  std::vector<RankRecord> ranks;

  /// Ranks meant to exchange gradients (not: one rank, or each trained alone).
  [[nodiscard]] bool exchanges() const { return ranks.size() > 1 && exchange != "none"; }
  /// Ranks were workers of a parameter server, whose streams are in no trace.
  [[nodiscard]] bool is_served() const {
    return std::ranges::any_of(ranks, [](const RankRecord& rank) { return rank.end && rank.end->served; }) ||
           exchange == "parameter_server";
  }
};

/// Reads a run's folder. Throws Misuse where `folder` is none, Corrupt naming file and line for what cannot be read.
/// Missing files of single ranks, missing end rows and torn last rows are not errors: they show in the result.
[[nodiscard]] Run read_run(const std::filesystem::path& folder);

}  // namespace syncopate::tools::report::record
