// Rows: medians of the timed steps, of the run and of the parts of its recipe.
#include "record/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "syncopate/tooling/units.hpp"

namespace syncopate::train {
namespace {

constexpr std::size_t kWarmUp = 3;  ///< steps that the times of a run of more than five steps leave out

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Steps whose times count: all but the first ones and those that only measured, if enough steps remain.
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
          {"peers", row_of(row.peers)}, {"origin", row_of(row.origin)}, {"decoded", row.decoded},
          {"damaged", row.damaged}};
}

void add_medians(Json& row, const std::vector<StepRow>& rows) {
  std::vector<double> step_s, input_s, forward_s, wire_bytes, payload_bytes;
  for (const StepRow* step : typical(rows)) {
    step_s.push_back(step->times.step_s);
    input_s.push_back(step->times.input_s);
    forward_s.push_back(step->times.forward_s);
    wire_bytes.push_back(static_cast<double>(step->wire_bytes));
    payload_bytes.push_back(static_cast<double>(step->payload_bytes));
  }
  row["step_seconds"] = summary_of(step_s);
  row["input_seconds"] = median_of(input_s);
  row["forward_seconds"] = median_of(forward_s);
  row["wire_bytes_per_step"] = static_cast<std::uint64_t>(median_of(wire_bytes));
  row["payload_bytes_per_step"] = static_cast<std::uint64_t>(median_of(payload_bytes));
}

/// Rows of the recipe's parts that this run trained; none without a recipe.
Json rows_of_parts(const std::vector<StepRow>& rows) {
  std::map<std::size_t, std::vector<StepRow>> parts;
  for (const StepRow& row : rows)
    if (row.part > 0) parts[row.part].push_back(row);
  Json result = Json::array();
  for (const auto& [part, steps] : parts) {
    result.push_back({{"part", part}, {"steps", steps.size()}});
    add_medians(result.back(), steps);
  }
  return result;
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

std::string text_of(const Evaluation& evaluation) {
  if (!evaluation.accuracy) return fmt::format("loss {:.4f} nats per byte", evaluation.loss);
  const std::string top_5 =
      evaluation.top_5_accuracy ? fmt::format("top-5 {:.2f} %, ", 100 * *evaluation.top_5_accuracy) : "";
  return fmt::format("accuracy {:.2f} %, {}loss {:.4f}", 100 * *evaluation.accuracy, top_5, evaluation.loss);
}

void add_values(Json& row, const Evaluation& evaluation) {
  if (evaluation.accuracy) row["accuracy"] = *evaluation.accuracy;
  if (evaluation.top_5_accuracy) row["top_5_accuracy"] = *evaluation.top_5_accuracy;
  row["loss"] = evaluation.loss;
}

Json row_of(const StepRow& row) {
  const StepTimes& t = row.times;
  Json result{{"event", "step"},
              {"step", row.step},
              {"epoch", row.epoch},
              {"learning_rate", row.learning_rate},
              {"loss", row.loss ? Json(*row.loss) : Json()},
              {"samples_per_second", row.samples_per_second},
              {"wait_share", t.step_s > 0 ? t.wait_s / t.step_s : 0.0},
              {"step_s", t.step_s},
              {"input_s", t.input_s},
              {"forward_s", t.forward_s},
              {"backward_s", t.backward_s},
              {"wait_s", t.wait_s},
              {"wire_bytes", row.wire_bytes},
              {"payload_bytes", row.payload_bytes},
              {"optimizer_s", t.optimizer_s}};
  if (row.part > 0) result["part"] = row.part;
  if (row.predicted_s) result["predicted_s"] = *row.predicted_s;
  if (row.measuring) result["measuring"] = true;
  if (t.slept_s > 0) result["slept_s"] = t.slept_s;
  return result;
}

Json row_of(const SentRow& row) {
  Json result{{"gradient", row.gradient}, {"elements", row.elements}, {"density", row.density}};
  if (row.threshold > 0) result["threshold"] = row.threshold;
  if (row.spread > 0) result["spread"] = row.spread;
  if (row.proposed > 0) result["proposed"] = row.proposed;
  for (std::size_t k = 0; k < row.importances.size(); ++k)
    if (row.importances[k] > 0)
      result["importances"].push_back(
          Json::array({std::ldexp(1.0, static_cast<int>(k) + compress::kFirstOctave), row.importances[k]}));
  return result;
}

Json row_of(const EndRow& end, int rank) {
  Json row{{"event", "end"}, {"rank", rank}, {"steps", end.steps}};
  add_medians(row, end.rows);
  if (end.evaluation) {
    add_values(row, *end.evaluation);
  } else {  // never evaluated: the last training loss
    row["loss"] = !end.rows.empty() && end.rows.back().loss ? Json(*end.rows.back().loss) : Json();
  }
  row["digest"] = end.digest;
  if (end.served) {
    row["staleness"] = {{"max", end.served->stalest}, {"mean", end.served->mean_staleness}};
    row["pushed_bytes"] = end.served->pushed_bytes;
    row["pulled_bytes"] = end.served->pulled_bytes;
    row["reconnections"] = end.served->reconnections;
    for (const ServerRecord& server : end.served->servers)
      row["servers"].push_back({{"address", server.address},
                                {"kept_bytes", server.kept_bytes},
                                {"received_bytes", server.received_bytes},
                                {"sent_bytes", server.sent_bytes}});
  }
  if (!end.tiers.empty()) row["input"] = Json::array();
  for (const cache::Counters& tiers : end.tiers) row["input"].push_back(row_of(tiers));
  if (const Json parts = rows_of_parts(end.rows); !parts.empty()) row["parts"] = parts;
  if (end.signal != 0) row["signal"] = end.signal;
  return row;
}

}  // namespace syncopate::train
