// What a run says: the contract's rows as JSON, the same for people, and files that `syncopate report` reads.
#include "record/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "require.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::train {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kWarmUp = 3;  ///< steps that do not count in the times of a run of more than five
constexpr auto kProgressEvery = std::chrono::milliseconds(100);

/// One write per line, so that lines of several ranks on one pipe stay whole.
void write_line(std::FILE* to, std::string line) {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), to);
  std::fflush(to);
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Json row_of(const StepRow& row) {
  const StepTimes& t = row.times;
  Json result{{"event", "step"},
              {"step", row.step},
              {"loss", row.loss ? Json(*row.loss) : Json()},
              {"samples_per_second", row.samples_per_second},
              {"wait_share", t.step_s > 0 ? t.wait_s / t.step_s : 0.0},
              {"step_s", t.step_s},
              {"input_s", t.input_s},
              {"forward_s", t.forward_s},
              {"backward_s", t.backward_s},
              {"wait_s", t.wait_s},
              {"wire_bytes", row.wire_bytes},
              {"optimizer_s", t.optimizer_s}};
  if (row.predicted_s) result["predicted_s"] = *row.predicted_s;
  if (row.measuring) result["measuring"] = true;
  if (t.slept_s > 0) result["slept_s"] = t.slept_s;
  return result;
}

/// Steps whose times count: without the first ones and those that only measured, if enough others are left.
std::vector<const StepRow*> typical(const std::vector<StepRow>& rows) {
  std::vector<const StepRow*> result;
  for (const StepRow& row : rows) result.push_back(&row);
  if (rows.size() > 5) result.erase(result.begin(), result.begin() + kWarmUp);
  if (std::ranges::any_of(result, [](const StepRow* row) { return !row->measuring; }))
    std::erase_if(result, [](const StepRow* row) { return row->measuring; });
  return result;
}

Json row_of(const cache::Tally& tally) {
  return {{"records", tally.records}, {"bytes", tally.bytes}, {"seconds", tally.seconds}};
}

Json row_of(const cache::Counters& row) {
  return {{"epoch", row.epoch},         {"memory", row_of(row.memory)}, {"disk", row_of(row.disk)},
          {"peers", row_of(row.peers)}, {"origin", row_of(row.origin)}, {"damaged", row.damaged}};
}

Json row_of(const EndRow& end, int rank) {
  std::vector<double> step_s, input_s, forward_s, wire_bytes;
  for (const StepRow* step : typical(end.rows)) {
    step_s.push_back(step->times.step_s);
    input_s.push_back(step->times.input_s);
    forward_s.push_back(step->times.forward_s);
    wire_bytes.push_back(static_cast<double>(step->wire_bytes));
  }
  Json row{{"event", "end"},
           {"rank", rank},
           {"steps", end.steps},
           {"step_seconds", summary_of(step_s)},
           {"input_seconds", median_of(input_s)},
           {"forward_seconds", median_of(forward_s)},
           {"wire_bytes_per_step", static_cast<std::uint64_t>(median_of(wire_bytes))}};
  if (end.evaluation) {
    if (end.evaluation->accuracy) row["accuracy"] = *end.evaluation->accuracy;
    row["loss"] = end.evaluation->loss;
  } else {  // never evaluated: the last training loss
    row["loss"] = !end.rows.empty() && end.rows.back().loss ? Json(*end.rows.back().loss) : Json();
  }
  row["digest"] = end.digest;
  if (end.served) {
    row["staleness"] = {{"max", end.served->stalest}, {"mean", end.served->mean_staleness}};
    row["pushed_bytes"] = end.served->pushed_bytes;
    row["pulled_bytes"] = end.served->pulled_bytes;
  }
  if (!end.tiers.empty()) row["input"] = Json::array();
  for (const cache::Counters& tiers : end.tiers) row["input"].push_back(row_of(tiers));
  if (end.signal != 0) row["signal"] = end.signal;
  return row;
}

std::string text_of(const Evaluation& evaluation) {
  if (evaluation.accuracy)
    return fmt::format("accuracy {:.2f} %, loss {:.4f}", 100 * *evaluation.accuracy, evaluation.loss);
  return fmt::format("loss {:.4f} nats per byte", evaluation.loss);
}

}  // namespace

std::string text_of(const cache::Counters& row) {
  const double all =
      static_cast<double>(row.memory.records + row.disk.records + row.peers.records + row.origin.records);
  const auto share = [&](const cache::Tally& tally) { return 100 * static_cast<double>(tally.records) / all; };
  return fmt::format(
      "input of epoch {}: {:.1f} % from memory, {:.1f} % from disk, {:.1f} % from other ranks, {:.1f} % from the "
      "origin",
      row.epoch + 1, share(row.memory), share(row.disk), share(row.peers), share(row.origin));
}

Json summary_of(std::vector<double> values) {
  if (values.empty()) return {{"median", nullptr}, {"min", nullptr}, {"max", nullptr}, {"n", 0}};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {{"median", median_of(values)}, {"min", *low}, {"max", *high}, {"n", values.size()}};
}

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
  fs::create_directories(options_.out, error);  // ranks on other hosts have folders of their own
  const fs::path file = fs::path(options_.out) / fmt::format("rank-{}.jsonl", rank_);
  rows_.open(file, std::ios::trunc);
  if (!rows_) throw SystemFailure(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
}

void Output::begin(const Json& run) {
  if (rank_ != 0) return;
  record(run);
  if (options_.json) {
    Json row = run;
    row["event"] = "begin";
    return print(text_of_json(row));
  }
  print(fmt::format(
      "{}: {} parameters, {} of gradients; {} rank{}, {}", options_.model, run["parameters"].get<std::uint64_t>(),
      format_bytes(run["gradient_bytes"].get<double>()), ranks_, ranks_ == 1 ? "" : "s",
      options_.exchange == "none"
          ? "each trains alone"
          : fmt::format("exchange {}, policy {}, codec {}", options_.exchange, options_.policy, options_.codec)));
}

void Output::record(const Json& run) {
  if (rank_ != 0 || options_.out.empty()) return;
  std::ofstream file(fs::path(options_.out) / "run.json", std::ios::trunc);
  file << text_of_json(run, 1) << '\n';
  if (!file.flush()) throw SystemFailure(fmt::format("cannot write run.json in --out {}", options_.out));
}

void Output::step(const StepRow& row, std::uint64_t last_step) {
  keep(row_of(row));
  if (rank_ != 0) return;
  since_report_s_ += row.times.step_s;
  waited_since_report_s_ += row.times.wait_s;
  const std::uint64_t every = options_.report_every.value_or(options_.json ? 1 : (last_step + 19) / 20);
  if (row.step % every == 0) {
    if (options_.json) {
      print(text_of_json(row_of(row)));
    } else {
      print(fmt::format("step {:>{}}/{}  loss {:<8.4f}  {:.0f} samples/s  waiting {:.0f} %", row.step,
                        std::to_string(last_step).size(), last_step, row.loss.value_or(0), row.samples_per_second,
                        100 * waited_since_report_s_ / since_report_s_));
    }
    since_report_s_ = waited_since_report_s_ = 0;
  }
  draw_progress(row, last_step);
}

void Output::epoch(double epoch, std::uint64_t step, const Evaluation& evaluation) {
  Json row{{"event", "epoch"}, {"epoch", epoch}, {"step", step}};
  if (epoch == static_cast<double>(static_cast<std::uint64_t>(epoch))) row["epoch"] = static_cast<std::uint64_t>(epoch);
  if (evaluation.accuracy) row["accuracy"] = *evaluation.accuracy;
  row["loss"] = evaluation.loss;
  keep(row);
  if (rank_ != 0) return;
  print(options_.json ? text_of_json(row) : fmt::format("epoch {:.4g}, step {}: {}", epoch, step, text_of(evaluation)));
}

void Output::note(const std::string& line) {
  if (rank_ == 0 && !options_.json) print(line);
}

void Output::trace(const std::vector<Span>& spans) {
  if (options_.out.empty()) return;
  std::ofstream file(fs::path(options_.out) / fmt::format("trace-{}.jsonl", rank_), std::ios::trunc);
  for (const Span& span : spans)
    file << text_of_json(Json{{"track", span.track},
                              {"name", span.name},
                              {"begin_s", span.begin_s},
                              {"end_s", span.end_s},
                              {"bytes", span.bytes}})
         << '\n';
}

void Output::end(const EndRow& end) {
  const Json row = row_of(end, rank_);
  keep(row);
  clear_progress();
  if (options_.json) return print(text_of_json(row));
  const Json& time = row["step_seconds"];
  const std::string median = time["n"] == 0 ? "none measured" : format_seconds(time["median"].get<double>());
  const std::string result = end.evaluation ? text_of(*end.evaluation) + "; " : "";
  const std::string stopped = end.signal == 0 ? "" : fmt::format(" (ended by SIG{})", ::sigabbrev_np(end.signal));
  print(fmt::format("rank {} of {}: {} steps{}, {} a step (median), {} sent per step; {}digest {}", rank_, ranks_,
                    end.steps, stopped, median, format_bytes(row["wire_bytes_per_step"].get<double>()), result,
                    end.digest));
}

void Output::print(const std::string& line) {
  clear_progress();
  write_line(stdout, line);
}

void Output::keep(const Json& row) {
  if (rows_.is_open()) rows_ << text_of_json(row) << std::endl;  // flushed: a killed rank leaves whole rows behind
}

void Output::warn(const std::string& line) {
  clear_progress();
  write_line(stderr, "syncopate-train: " + line);
}

void Output::draw_progress(const StepRow& row, std::uint64_t last_step) {
  const auto now = std::chrono::steady_clock::now();
  if (!progress_ || now - progress_at_ < kProgressEvery) return;
  progress_at_ = now;
  std::string line =
      fmt::format("step {}/{}  loss {:.4f}  {:.0f} samples/s  waiting {:.0f} %", row.step, last_step,
                  row.loss.value_or(0), row.samples_per_second, 100 * row.times.wait_s / row.times.step_s);
  const std::size_t width = line.size();
  line.resize(std::max(width, progress_width_), ' ');
  progress_width_ = width;
  fmt::print(stderr, "{}\r", line);
  std::fflush(stderr);
}

void Output::clear_progress() {
  if (progress_width_ == 0) return;
  fmt::print(stderr, "{}\r", std::string(progress_width_, ' '));
  std::fflush(stderr);
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
    write_line(stdout, text_of_json(row));
  }
  write_line(stderr, fmt::format("syncopate-train: {}: {}", name_of(error.kind()), error.what()));
}

}  // namespace syncopate::train
