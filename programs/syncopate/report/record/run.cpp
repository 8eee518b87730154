// Reads the folder of a training run: run.json, and rows and spans of every rank.
#include "report/record/run.hpp"

#include <fmt/format.h>

#include <cmath>

#include "report/record/jsonl.hpp"
#include "report/record/overlap.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::report::record {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t kMaxRanks = 65'536;

std::uint64_t whole(const json& object, std::string_view key) {
  const double value = number(object, key);
  if (!(value >= 0 && value < 9e15 && value == std::floor(value)))
    throw Corrupt(fmt::format("\"{}\" must be a whole number, 0 or more", key));
  return static_cast<std::uint64_t>(value);
}

/// The array `key`, or an empty one.
const json& list(const json& object, std::string_view key) {
  static const json empty = json::array();
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return empty;
  if (!found->is_array()) throw Corrupt(fmt::format("\"{}\" must be an array", key));
  return *found;
}

Part part_of(const json& row) {
  if (!row.is_object()) throw Corrupt("\"parts\" must be an array of objects");
  Part part{.number = static_cast<double>(whole(row, "part")),
            .first_epoch = static_cast<double>(whole(row, "first_epoch")),
            .epochs = static_cast<double>(whole(row, "epochs")),
            .resolution = number(row, "resolution"),
            .batch = static_cast<double>(whole(row, "batch")),
            .codec = text(row, "codec"),
            .exchange = text(row, "exchange")};
  const json& rates = list(row, "learning_rate");
  if (rates.empty()) return part;
  if (rates.size() != 2 || !rates[0].is_number() || !rates[1].is_number())
    throw Corrupt("\"learning_rate\" of a part must be two numbers");
  part.first_rate = rates[0].get<double>();
  part.last_rate = rates[1].get<double>();
  return part;
}

void read_configuration(const json& source, Run& run) {
  run.configuration = source;
  run.model = text(source, "model");
  run.exchange = text(source, "exchange");
  run.batch = number(source, "batch");
  run.gradient_bytes = number(source, "gradient_bytes");
  run.start_time = number(source, "start_time");
  run.duration_s = number(source, "duration_s");
  const auto emulated = source.find("emulated_compute");
  run.emulated_compute = emulated != source.end() && emulated->is_boolean() && emulated->get<bool>();
  for (const json& layer : list(source, "layers"))
    run.layers.push_back({text(layer, "name"), whole(layer, "elements")});
  for (const json& row : list(source, "parts")) run.parts.push_back(part_of(row));
  for (const json& row : list(source, "buckets")) {
    const Bucket bucket{whole(row, "first"), whole(row, "last"), whole(row, "bytes"), text(row, "codec")};
    if (bucket.first > bucket.last || bucket.last >= run.layers.size())
      throw Corrupt(fmt::format("bucket {}: layers {} to {} of {}", run.buckets.size(), bucket.first, bucket.last,
                                run.layers.size()));
    run.buckets.push_back(bucket);
  }
  const std::uint64_t ranks = whole(source, "ranks");
  if (ranks < 1 || ranks > kMaxRanks) throw Corrupt(fmt::format("\"ranks\" must be 1 to {}, not {}", kMaxRanks, ranks));
  run.ranks.resize(ranks);
}

Step step_of(const json& row) {
  Step step;
  step.step = static_cast<double>(whole(row, "step"));
  step.part = number(row, "part");
  step.time = number(row, "time");
  step.loss = number(row, "loss");
  step.samples_per_second = number(row, "samples_per_second");
  step.wait_share = number(row, "wait_share");
  step.step_s = number(row, "step_s");
  step.input_s = number(row, "input_s");
  step.forward_s = number(row, "forward_s");
  step.backward_s = number(row, "backward_s");
  step.wait_s = number(row, "wait_s");
  step.optimizer_s = number(row, "optimizer_s");
  step.wire_bytes = number(row, "wire_bytes");
  step.predicted_s = number(row, "predicted_s");
  step.measuring = row.value("measuring", false);
  return step;
}

Tier tier_of(const json& row, std::string_view name) {
  const auto tier = row.find(name);
  if (tier == row.end() || !tier->is_object())
    throw Corrupt(fmt::format("\"input\" must have an object \"{}\" for each epoch", name));
  return {static_cast<double>(whole(*tier, "records")), static_cast<double>(whole(*tier, "bytes"))};
}

InputEpoch input_of(const json& row) {
  if (!row.is_object()) throw Corrupt("\"input\" must be an array of objects");
  return {static_cast<double>(whole(row, "epoch")),
          tier_of(row, "memory"),
          tier_of(row, "disk"),
          tier_of(row, "peers"),
          tier_of(row, "origin"),
          static_cast<double>(whole(row, "damaged"))};
}

std::optional<Served> served_of(const json& row) {
  const auto staleness = row.find("staleness");
  if (staleness == row.end() || !staleness->is_object()) return std::nullopt;
  Served served{number(*staleness, "max"), number(*staleness, "mean"), number(row, "pushed_bytes"),
                number(row, "pulled_bytes"), number(row, "reconnections")};
  for (const json& server : list(row, "servers")) {
    if (!server.is_object()) throw Corrupt("\"servers\" must be an array of objects");
    served.servers.push_back({text(server, "address"), number(server, "kept_bytes"), number(server, "received_bytes"),
                              number(server, "sent_bytes")});
  }
  return served;
}

End end_of(const json& row) {
  End end;
  end.steps = number(row, "steps");
  end.forward_seconds = number(row, "forward_seconds");
  end.wire_bytes_per_step = number(row, "wire_bytes_per_step");
  end.digest = text(row, "digest");
  end.served = served_of(row);
  for (const json& epoch : list(row, "input")) end.input.push_back(input_of(epoch));
  const auto spread = row.find("step_seconds");
  if (spread != row.end() && spread->is_object())
    end.step_seconds = {number(*spread, "median"), number(*spread, "min"), number(*spread, "max"),
                        number(*spread, "n")};
  return end;
}

void read_row(const json& row, RankRecord& rank) {
  const std::string event = text(row, "event");
  if (const double time = number(row, "time"); !std::isnan(time)) rank.last_time = time;
  if (event == "step") {
    rank.steps.push_back(step_of(row));
  } else if (event == "epoch") {
    const double reached = rank.steps.empty() ? 0 : rank.steps.back().step;
    const double given = number(row, "step");
    rank.evaluations.push_back({std::isnan(given) ? reached : given, number(row, "epoch"), number(row, "accuracy"),
                                number(row, "loss"), sent_of(row), number(row, "top_5_accuracy")});
  } else if (event == "end") {
    rank.end = end_of(row);
  } else if (row.contains("error")) {
    rank.error = text(row, "error");
  }
}

Span span_of(const json& row) {
  Span span{text(row, "track"), text(row, "name"), number(row, "begin_s"), number(row, "end_s"), 0};
  if (row.contains("bytes")) span.bytes = whole(row, "bytes");
  return span;
}

void add(RankRecord& rank, Span span) {
  if (!std::isfinite(span.begin_s) || !std::isfinite(span.end_s) || span.end_s < span.begin_s)
    rank.has_bad_spans = true;
  else
    (span.track == "planned" ? rank.planned : rank.spans).push_back(std::move(span));
}

}  // namespace

std::vector<SentGradient> sent_of(const json& row) {
  std::vector<SentGradient> sent;
  for (const json& of : list(row, "sent")) {
    if (!of.is_object()) throw Corrupt("\"sent\" must be an array of objects");
    sent.push_back({text(of, "gradient"), number(of, "elements"), number(of, "density"), number(of, "threshold"),
                    number(of, "spread")});
  }
  return sent;
}

double density_of(const std::vector<SentGradient>& gradients) {
  double elements = 0, sent = 0;
  for (const SentGradient& of : gradients) elements += of.elements, sent += of.elements * of.density;
  return elements > 0 ? sent / elements : kUnknown;
}

Run read_run(const fs::path& folder) {
  const fs::path configuration = folder / "run.json";
  std::error_code error;
  const fs::file_type kind = fs::status(configuration, error).type();
  if (kind == fs::file_type::none)
    throw SystemFailure(fmt::format("cannot read {}: {}", configuration.string(), error.message()));
  if (kind == fs::file_type::not_found)
    throw Misuse(
        fmt::format("{} is not a run: expected a folder that `syncopate train --out DIR` or syncopate.torch.Recorder "
                    "wrote, with run.json in it",
                    folder.string()));
  Run run;
  const json source = read_object(configuration);
  try {
    read_configuration(source, run);
  } catch (const Corrupt& damaged) {
    throw Corrupt(fmt::format("{}: {}", configuration.string(), damaged.what()));
  }
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    RankRecord& rank = run.ranks[r];
    const fs::path rows = folder / fmt::format("rank-{}.jsonl", r), trace = folder / fmt::format("trace-{}.jsonl", r);
    rank.present = fs::exists(rows);
    if (rank.present) rank.torn = read_rows(rows, [&](const json& row) { read_row(row, rank); });
    if (fs::exists(trace)) read_rows(trace, [&](const json& row) { add(rank, span_of(row)); });
    if (!run.exchanges()) std::erase_if(rank.spans, is_message);
  }
  for (const RankRecord& rank : run.ranks)  // fmax ignores NaN
    run.duration_s = std::fmax(run.duration_s, rank.last_time - run.start_time);
  return run;
}

}  // namespace syncopate::tools::report::record
