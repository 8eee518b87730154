// Output of a run: its rows as JSON or as text, and the files that `syncopate report` reads.
#include "record/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "require.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/standard_streams.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::train {
namespace fs = std::filesystem;
namespace {

constexpr auto kProgressEvery = std::chrono::milliseconds(100);

/// Seconds since the Unix epoch, in whole microseconds.
double unix_time() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(since).count()) / 1e6;
}

/// Adds the current time to a row.
Json timed(Json row) {
  row["time"] = unix_time();
  return row;
}

std::string medians_of(const Json& row) {
  const Json& time = row["step_seconds"];
  const auto steps = row["steps"].get<std::uint64_t>();
  if (time["n"] == 0) return fmt::format("nothing trained, at step {}", steps);
  return fmt::format("{} steps, {} a step (median), {} sent per step", steps,
                     format_seconds(time["median"].get<double>()),
                     format_bytes(row["wire_bytes_per_step"].get<double>()));
}

std::string manner_of(const Options& o) {
  if (o.recipe) return fmt::format("by recipe {}", o.recipe_file);
  if (o.sync.exchange == "none") return "each trains alone";
  if (o.is_served())
    return fmt::format("exchange {}, consistency {}, codec {}", o.sync.exchange, o.worker.consistency,
                       o.sync.coding.codec);
  return fmt::format("exchange {}, policy {}, codec {}", o.sync.exchange, o.sync.policy, o.sync.coding.codec);
}

}  // namespace

Output::Output(const Options& options, int rank, int ranks) : options_(options), rank_(rank), ranks_(ranks) {
  const char* const asked = std::getenv("SYNCOPATE_PROGRESS");  // set by a launcher that draws on its own terminal
  progress_ = rank == 0 && (::isatty(STDERR_FILENO) == 1 || (asked && std::strcmp(asked, "1") == 0));
}

Output::~Output() { clear_progress(); }

void Output::clear_folder() {
  if (options_.out.empty()) return;
  std::error_code error;
  fs::create_directories(options_.out, error);
  if (error) throw SystemFailure(fmt::format("cannot make --out {}: {}", options_.out, error.message()));
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(options_.out)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.starts_with("rank-") || name.starts_with("trace-");
    if (name == "run.json" || (ours && name.ends_with(".jsonl"))) stale.push_back(entry.path());
  }
  for (const fs::path& file : stale) fs::remove(file, error);
}

void Output::open_folder() {
  if (options_.out.empty()) return;
  std::error_code error;
  fs::create_directories(options_.out, error);  // ranks on other hosts have their own folders
  const fs::path file = fs::path(options_.out) / fmt::format("rank-{}.jsonl", rank_);
  errno = 0;
  rows_.open(file, std::ios::trunc);
  if (!rows_) throw SystemFailure(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
}

void Output::begin(const Json& run) {
  started_ = unix_time();
  if (rank_ != 0) return;
  if (!options_.out.empty()) write_record(run);
  if (options_.json) {
    Json row = run;
    row["event"] = "begin";
    row["time"] = started_;
    return print(text_of_json(row));
  }
  print(fmt::format("{}: {} parameters, {} of gradients; {} rank{}, {}", options_.model,
                    run["parameters"].get<std::uint64_t>(), format_bytes(run["gradient_bytes"].get<double>()), ranks_,
                    ranks_ == 1 ? "" : "s", manner_of(options_)));
}

void Output::record(const Json& run) {
  if (rank_ != 0 || options_.out.empty()) return;
  Json whole = run;
  whole["duration_s"] = unix_time() - started_;
  try {
    write_record(std::move(whole));
  } catch (const SystemFailure& failure) {
    lost(failure.what(), "the earlier one remains");
  }
}

/// Writes another file and renames it, so that a full disk leaves the old file intact.
void Output::write_record(Json run) {
  run["start_time"] = started_;
  const fs::path file = fs::path(options_.out) / "run.json", draft = fs::path(options_.out) / "run.json.writing";
  errno = 0;
  std::ofstream stream(draft, std::ios::trunc);
  stream << text_of_json(run, 1) << '\n';
  stream.close();
  std::error_code error;
  if (!stream) error = {errno, std::generic_category()};
  if (stream) fs::rename(draft, file, error);
  if (stream && !error) return;
  std::error_code ignored;
  fs::remove(draft, ignored);
  throw SystemFailure(fmt::format("cannot write {}: {}", file.string(), error.message()));
}

void Output::lost(const std::string& failure, const std::string& what) {
  warn(fmt::format("{}; {}; training goes on", failure, what));
  if (!unwritten_) unwritten_ = SystemFailure(failure);
}

void Output::part(const Part& part, std::size_t parts, std::uint64_t step) {
  Json row = timed({{"event", "part"}, {"step", step}});
  row.update(row_of(part));
  keep(row);
  if (rank_ != 0) return;
  print(options_.json ? text_of_json(row) : fmt::format("part {} of {}, {}", part.number, parts, text_of(part)));
}

void Output::step(const StepRow& row, std::uint64_t last_step) {
  const Json json = timed(row_of(row));
  keep(json);
  if (rank_ != 0) return;
  since_report_s_ += row.times.step_s;
  waited_since_report_s_ += row.times.wait_s;
  const std::uint64_t every =
      options_.report_every.value_or(options_.json ? 1 : last_step / 20 + (last_step % 20 == 0 ? 0 : 1));
  if (row.step % every == 0) {
    if (options_.json) {
      print(text_of_json(json));
    } else {
      print(fmt::format("step {:>{}}/{}  loss {:<8.4f}  {} samples/s  waiting {:.0f} %", row.step,
                        std::to_string(last_step).size(), last_step, row.loss.value_or(0),
                        format_rate(row.samples_per_second), 100 * waited_since_report_s_ / since_report_s_));
    }
    since_report_s_ = waited_since_report_s_ = 0;
  }
  draw_progress(row, last_step);
}

void Output::epoch(double epoch, std::uint64_t step, const Evaluation& evaluation, const std::vector<SentRow>& sent) {
  Json row{{"event", "epoch"}, {"epoch", epoch}, {"step", step}};
  if (epoch == static_cast<double>(static_cast<std::uint64_t>(epoch))) row["epoch"] = static_cast<std::uint64_t>(epoch);
  add_values(row, evaluation);
  for (const SentRow& of : sent) row["sent"].push_back(row_of(of));
  row = timed(std::move(row));
  keep(row);
  if (rank_ != 0) return;
  print(options_.json ? text_of_json(row) : fmt::format("epoch {:.4g}, step {}: {}", epoch, step, text_of(evaluation)));
}

void Output::note(const std::string& line) {
  if (rank_ == 0 && !options_.json) print(line);
}

void Output::trace(const std::vector<Span>& spans) {
  if (options_.out.empty()) return;
  const fs::path name = fs::path(options_.out) / fmt::format("trace-{}.jsonl", rank_);
  errno = 0;
  std::ofstream file(name, std::ios::trunc);
  for (const Span& span : spans)
    file << text_of_json(Json{{"track", span.track},
                              {"name", span.name},
                              {"begin_s", span.begin_s},
                              {"end_s", span.end_s},
                              {"bytes", span.bytes}})
         << '\n';
  file.close();
  if (!file)
    lost(fmt::format("cannot write {}: {}", name.string(), std::strerror(errno)), "the traced step is incomplete");
}

void Output::end(const EndRow& end) {
  const Json row = timed(row_of(end, rank_));
  keep(row);
  clear_progress();
  if (options_.json) return print(text_of_json(row));
  for (const Json& part : row.value("parts", Json::array()))
    if (rank_ == 0) print(fmt::format("part {}: {}", part["part"].get<std::size_t>(), medians_of(part)));
  const std::string result = end.evaluation ? text_of(*end.evaluation) + "; " : "";
  const std::string stopped = end.signal == 0 ? "" : fmt::format(" (ended by SIG{})", ::sigabbrev_np(end.signal));
  print(fmt::format("rank {} of {}: {}{}; {}digest {}", rank_, ranks_, medians_of(row), stopped, result, end.digest));
}

void Output::print(const std::string& line) {
  clear_progress();
  write_output(line + "\n");
}

void Output::keep(const Json& row) {
  if (!rows_.is_open()) return;
  errno = 0;
  rows_ << text_of_json(row) << std::endl;  // flushed, so that a killed rank leaves complete rows
  if (rows_) return;
  const std::string reason = std::strerror(errno);
  rows_.close();
  const fs::path file = fs::path(options_.out) / fmt::format("rank-{}.jsonl", rank_);
  lost(fmt::format("cannot write {}: {}", file.string(), reason), fmt::format("later rows of rank {} are lost", rank_));
}

void Output::warn(const std::string& line) {
  clear_progress();
  write_error(fmt::format("syncopate-train: {}\n", line));
}

void Output::draw_progress(const StepRow& row, std::uint64_t last_step) {
  const auto now = std::chrono::steady_clock::now();
  if (!progress_ || now - progress_at_ < kProgressEvery) return;
  progress_at_ = now;
  std::string line =
      fmt::format("step {}/{}  loss {:.4f}  {} samples/s  waiting {:.0f} %", row.step, last_step, row.loss.value_or(0),
                  format_rate(row.samples_per_second), 100 * row.times.wait_s / row.times.step_s);
  const std::size_t width = line.size();
  line.resize(std::max(width, progress_width_), ' ');
  progress_width_ = width;
  write_error(fmt::format("{}\r", line));
}

void Output::clear_progress() {
  if (progress_width_ == 0) return;
  write_error(fmt::format("{}\r", std::string(progress_width_, ' ')));
  progress_width_ = 0;
}

void print_error(const Error& error, int rank, bool json) {
  const Where& where = error.where();
  if (json) {
    Json row{{"error", error.what()}, {"kind", name_of(error.kind())}};
    if (where.rank >= 0 || rank >= 0) row["rank"] = where.rank >= 0 ? where.rank : rank;
    if (where.peer >= 0) row["peer"] = where.peer;
    if (!where.operation.empty()) row["operation"] = where.operation;
    if (!where.tensor.empty()) row["tensor"] = where.tensor;
    write_output(text_of_json(row) + "\n");
  }
  write_error(fmt::format("syncopate-train: {}: {}\n", name_of(error.kind()), error.what()));
}

}  // namespace syncopate::train
