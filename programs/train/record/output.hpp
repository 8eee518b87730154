// Output of a run: rows on stdout, a progress line on the terminal, and the run's folder.
#pragma once

#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "recipe/part.hpp"
#include "record/rows.hpp"
#include "syncopate/error.hpp"
#include "syncopate/trace.hpp"

namespace syncopate::train {

/// The output of one rank. Only rank 0 prints steps and epochs; every rank prints its end and writes its own files.
class Output final {
 public:
  Output(const Options& options, int rank, int ranks);
  ~Output();

  /// Prepares the run's folder; rank 0 first deletes the files of an earlier run. Throws SystemFailure.
  void clear_folder();  ///< rank 0, before the others open their files
  void open_folder();
  void begin(const Json& run);                                         ///< run.json, and the first line of text
  void record(const Json& run);                                        ///< run.json again, with the time since `begin`
  void part(const Part& part, std::size_t parts, std::uint64_t step);  ///< `step`: number of steps before the part
  void step(const StepRow& row, std::uint64_t last_step);
  void epoch(double epoch, std::uint64_t step, const Evaluation& evaluation, const std::vector<SentRow>& sent);
  void note(const std::string& line);
  void warn(const std::string& line);  ///< from any rank, on stderr
  void trace(const std::vector<Span>& spans);
  void end(const EndRow& end);
  /// The first failure to write a file of --out after `begin`. It is printed when it happens and does not end the run.
  [[nodiscard]] const std::optional<SystemFailure>& unwritten() const { return unwritten_; }

 private:
  void print(const std::string& line);
  void keep(const Json& row);
  void write_record(Json run);
  void lost(const std::string& failure, const std::string& what);
  void draw_progress(const StepRow& row, std::uint64_t last_step);
  void clear_progress();

  const Options& options_;
  int rank_, ranks_;
  bool progress_ = false;
  std::size_t progress_width_ = 0;
  std::chrono::steady_clock::time_point progress_at_;
  double since_report_s_ = 0, waited_since_report_s_ = 0;
  double started_ = 0;  ///< seconds since the Unix epoch
  std::ofstream rows_;
  std::optional<SystemFailure> unwritten_;
};

/// Prints the message on stderr and, with --json, the error row. `rank` is -1 before the group was joined.
void print_error(const Error& error, int rank, bool json);

}  // namespace syncopate::train
