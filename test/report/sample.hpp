// Sample runs for the tests of the report: as values, and as a folder of files.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "report/record/run.hpp"

namespace syncopate::tools::report::record {

/// Whether a part stands in a text.
inline bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Forward [0, 1], backward [1, 3] in two layers, one bucket [2, 4] and one [4, 5], waiting [3, 5], optimizer [5, 6]:
/// of 3 s of exchange 1 s is hidden.
inline std::vector<Span> sample_spans() {
  return {{"forward", "forward", 0, 1, 0},    {"backward", "two", 1, 2, 800}, {"backward", "one", 2, 3, 400},
          {"exchange", "two", 2, 4, 800},     {"exchange", "one", 4, 5, 400}, {"wait", "wait", 3, 5, 0},
          {"optimizer", "optimizer", 5, 6, 0}};
}

inline nlohmann::json sample_configuration(std::size_t ranks) {
  return {{"model", "mlp"},
          {"data", "images"},
          {"ranks", ranks},
          {"policy", "fusion"},
          {"codec", "none"},
          {"batch", 16},
          {"steps", 10},
          {"exchange", ranks > 1 ? "allreduce" : "none"},
          {"algorithm", "ring"},
          {"threads", 1},
          {"seed", 1},
          {"parameters", 300},
          {"gradient_bytes", 1200},
          {"command", "syncopate-train --model mlp"},
          {"layers", {{{"name", "one"}, {"elements", 100}}, {{"name", "two"}, {"elements", 200}}}},
          {"buckets", {{{"first", 1}, {"last", 1}, {"bytes", 800}}, {{"first", 0}, {"last", 0}, {"bytes", 400}}}}};
}

inline Step sample_step(double step) {
  Step row;
  row.step = step;
  row.loss = 2 / (1 + step);
  row.samples_per_second = 10;
  row.wait_share = 1.0 / 3;
  row.step_s = 6, row.forward_s = 1, row.backward_s = 2, row.wait_s = 2, row.optimizer_s = 1;
  row.wire_bytes = 1800;
  return row;
}

/// A run in memory that ended well.
inline Run sample_run(std::size_t ranks, std::size_t steps) {
  Run run;
  run.configuration = sample_configuration(ranks);
  run.configuration["steps"] = steps;
  run.model = "mlp";
  run.exchange = ranks > 1 ? "allreduce" : "none";
  run.gradient_bytes = 1200;
  run.layers = {{"one", 100}, {"two", 200}};
  run.buckets = {{1, 1, 800}, {0, 0, 400}};
  run.ranks.resize(ranks);
  for (RankRecord& rank : run.ranks) {
    rank.present = true;
    for (std::size_t s = 1; s <= steps; ++s) rank.steps.push_back(sample_step(static_cast<double>(s)));
    rank.evaluations.push_back({static_cast<double>(steps), 1, 0.75, 0.5});
    rank.end = End{static_cast<double>(steps), {6, 6, 6, 1}, 1, 1800, "feedbeef"};
    rank.spans = sample_spans();
  }
  return run;
}

/// A fresh folder that holds a run of 10 steps, and vanishes with this value.
class SampleFolder final {
 public:
  explicit SampleFolder(std::size_t ranks) {
    std::string name = (std::filesystem::temp_directory_path() / "syncopate-report-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    write("run.json", sample_configuration(ranks).dump());
    for (std::size_t r = 0; r < ranks; ++r) {
      write(fmt::format("rank-{}.jsonl", r), rows(r));
      std::string spans;
      for (const Span& span : sample_spans())
        spans += nlohmann::json{{"track", span.track},
                                {"name", span.name},
                                {"begin_s", span.begin_s},
                                {"end_s", span.end_s},
                                {"bytes", span.bytes}}
                     .dump() +
                 "\n";
      write(fmt::format("trace-{}.jsonl", r), spans);
    }
  }
  ~SampleFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SampleFolder(const SampleFolder&) = delete;
  SampleFolder& operator=(const SampleFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& content) const { std::ofstream(path_ / name) << content; }
  void append(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::app) << content;
  }
  void remove(const std::string& name) const { std::filesystem::remove(path_ / name); }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream stream(path_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  /// Ten step rows without an end row.
  [[nodiscard]] static std::string steps() {
    std::string text;
    for (int s = 1; s <= 10; ++s)
      text +=
          fmt::format(R"({{"event":"step","step":{},"loss":{},"samples_per_second":10,"wait_share":0.33,"step_s":6,)"
                      R"("forward_s":1,"backward_s":2,"wait_s":2,"wire_bytes":1800,"optimizer_s":1}})"
                      "\n",
                      s, 2.0 / s);
    return text;
  }
  [[nodiscard]] static std::string rows(std::size_t rank) {
    return steps() +
           R"({"event":"epoch","epoch":1,"step":10,"accuracy":0.75,"top_5_accuracy":0.875,"loss":0.5})"
           "\n" +
           fmt::format(R"({{"event":"end","rank":{},"steps":10,"step_seconds":{{"median":6,"min":6,"max":6,"n":7}},)"
                       R"("forward_seconds":1,"wire_bytes_per_step":1800,"digest":"feedbeef"}})"
                       "\n",
                       rank);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace syncopate::tools::report::record
