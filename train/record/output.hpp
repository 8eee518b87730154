// What a run says: rows on stdout, a progress line on the terminal, and the run's folder.
#pragma once

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "syncopate/cache.hpp"
#include "syncopate/error.hpp"
#include "syncopate/trace.hpp"
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

/// The voice of one rank. Only rank 0 prints steps and epochs; every rank prints its end and keeps its own files.
class Output final {
 public:
  Output(const Options& options, int rank, int ranks);
  ~Output();

  /// Makes the run's folder ready; rank 0 first clears what an earlier run left there. Throws SystemFailure.
  void clear_folder();  ///< rank 0, before the others open theirs
  void open_folder();
  void begin(const Json& run);   ///< run.json, and the first line people read
  void record(const Json& run);  ///< run.json, again
  void step(const StepRow& row, std::uint64_t last_step);
  void epoch(double epoch, std::uint64_t step, const Evaluation& evaluation);
  void note(const std::string& line);
  void warn(const std::string& line);  ///< from any rank, on stderr
  void trace(const std::vector<Span>& spans);
  void end(const EndRow& end);

 private:
  void print(const std::string& line);
  void keep(const Json& row);
  void draw_progress(const StepRow& row, std::uint64_t last_step);
  void clear_progress();

  const Options& options_;
  int rank_, ranks_;
  bool progress_ = false;
  std::size_t progress_width_ = 0;
  std::chrono::steady_clock::time_point progress_at_;
  double since_report_s_ = 0, waited_since_report_s_ = 0;
  std::ofstream rows_;
};

/// The message on stderr and, with --json, the contract's error row. `rank` is -1 before the group was joined.
void print_error(const Error& error, int rank, bool json);

}  // namespace syncopate::train
