// Rows of training steps: medians over steps, rates over ranks, and how they are shown.
#include "bench/step/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/rows.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

/// How much longer steps took than was predicted.
double error_of(const Steps& steps) { return median(steps.step) / median(steps.predicted) - 1; }

double share_of(const Steps& steps, const Steps& ceiling) {
  return steps.steps_per_second() / ceiling.steps_per_second();
}

double wire_seconds(const StepVariant& variant, const Steps& steps, const StepNetwork& network) {
  if (variant.codec != "none") return static_cast<double>(steps.wire_bytes) * 8 / network.bits_per_s * kEthernetHeaders;
  Series ring;
  ring.collective = "allreduce";
  ring.ranks = network.ranks;
  ring.ranks_per_host = network.ranks_per_host;
  ring.bytes = steps.gradient_bytes;
  return bound_seconds(ring, network.bits_per_s) * kEthernetHeaders;
}

}  // namespace

std::string StepVariant::text() const {
  if (is_ceiling()) return "(no exchange)";
  std::string text = is_own() ? policy : contender;
  if (codec != "none") text += " " + codec;
  if (is_own() && exchange != "allreduce") text += " " + exchange;
  return text;
}

void Steps::take(const std::string& line, int rank) {
  const nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
  if (!row.is_object()) return;
  const std::string event = row.value("event", "");
  if (event == "end" && !rates_.empty()) rates_.back() += 1 / row["step_seconds"]["median"].get<double>();
  if (rank != 0) return;
  if (event == "end") state_bytes = row.value("state_bytes", std::uint64_t{0});
  if (event == "begin") gradient_bytes = row.value("gradient_bytes", std::uint64_t{0});
  if (event != "step" || row["step"].get<int>() <= warmup_) return;
  step.push_back(row["step_s"].get<double>());
  forward.push_back(row["forward_s"].get<double>());
  backward.push_back(row["backward_s"].get<double>());
  if (row.contains("wait_s")) wait.push_back(row["wait_s"].get<double>());
  optimizer.push_back(row["optimizer_s"].get<double>());
  if (row.contains("predicted_s")) predicted.push_back(row["predicted_s"].get<double>());
  wire_bytes = row.value("wire_bytes", std::uint64_t{0});
}

double Steps::steps_per_second() const { return median(rates_); }

std::vector<double> Steps::even_steps(int ranks) const {
  std::vector<double> seconds;
  for (const double rate : rates_) seconds.push_back(ranks / rate);
  return seconds;
}

double StepBound::seconds() const { return std::max(alone_s, forward_s + wire_s + optimizer_s); }

std::optional<StepBound> bound_of(const StepVariant& variant, const Steps& steps, const Steps& ceiling,
                                  const StepNetwork& network) {
  const bool combines = variant.exchange == "allreduce" || variant.exchange == "hierarchical";
  const bool known = variant.codec == "none" || (network.ranks_per_host == 1 && steps.wire_bytes > 0);
  if (network.bits_per_s <= 0 || !known || (!combines && !variant.is_ceiling())) return std::nullopt;
  return StepBound{.alone_s = median(ceiling.step),
                   .forward_s = median(ceiling.forward),
                   .optimizer_s = median(ceiling.optimizer),
                   .wire_s = variant.is_ceiling() ? 0 : wire_seconds(variant, steps, network)};
}

nlohmann::json row_of(const StepVariant& variant, const Steps& steps, const Steps& ceiling,
                      const StepNetwork& network) {
  const auto bound = bound_of(variant, steps, ceiling, network);
  const bool is_predicted = !steps.predicted.empty();
  return {{"benchmark", "step"},
          {"contender", variant.contender},
          {"policy", variant.is_ceiling() || !variant.is_own() ? nlohmann::json() : nlohmann::json(variant.policy)},
          {"codec", variant.codec},
          {"exchange", variant.exchange},
          {"ranks", network.ranks},
          {"ranks_per_host", network.ranks_per_host},
          {"step_seconds", timing(steps.step)},
          {"ceiling_seconds", timing(ceiling.even_steps(network.ranks))},
          {"share_of_ceiling", share_of(steps, ceiling)},
          {"bound_seconds", bound ? nlohmann::json(bound->seconds()) : nlohmann::json()},
          {"over_bound", bound ? nlohmann::json(median(steps.step) / bound->seconds()) : nlohmann::json()},
          {"predicted_s", is_predicted ? nlohmann::json(median(steps.predicted)) : nlohmann::json()},
          {"prediction_error", is_predicted ? nlohmann::json(error_of(steps)) : nlohmann::json()},
          {"wire_bytes_per_step",
           steps.wire_bytes > 0 || variant.is_ceiling() ? nlohmann::json(steps.wire_bytes) : nlohmann::json()},
          {"state_bytes", steps.state_bytes > 0 ? nlohmann::json(steps.state_bytes) : nlohmann::json()},
          {"forward_seconds", median(steps.forward)},
          {"backward_seconds", median(steps.backward)},
          {"wait_seconds", steps.wait.empty() ? nlohmann::json() : nlohmann::json(median(steps.wait))},
          {"optimizer_seconds", median(steps.optimizer)}};
}

std::string heads_of_steps() {
  return fmt::format("{:<28}{:>24}{:>9}{:>10}{:>8}{:>11}{:>9}{:>12}{:>10}{:>9}{:>12}\n", "policy, codec, exchange",
                     "step (min..max)", "forward", "backward", "wait", "optimizer", "share", "over bound", "predicted",
                     "error", "sent");
}

std::string line_of(const StepVariant& variant, const Steps& steps, const Steps& ceiling, const StepNetwork& network) {
  const auto [low, high] = std::minmax_element(steps.step.begin(), steps.step.end());
  const bool is_predicted = !steps.predicted.empty();
  const auto bound = bound_of(variant, steps, ceiling, network);
  return fmt::format("{:<28}{:>24}{:>9.1f}{:>10.1f}{:>8}{:>11.1f}{:>9}{:>12}{:>10}{:>9}{:>12}\n", variant.text(),
                     fmt::format("{:.1f} ({:.1f}..{:.1f})", 1e3 * median(steps.step), 1e3 * *low, 1e3 * *high),
                     1e3 * median(steps.forward), 1e3 * median(steps.backward),
                     steps.wait.empty() ? "" : fmt::format("{:.1f}", 1e3 * median(steps.wait)),
                     1e3 * median(steps.optimizer), fmt::format("{:.1f} %", 100 * share_of(steps, ceiling)),
                     bound ? fmt::format("x{:.3f}", median(steps.step) / bound->seconds()) : "",
                     is_predicted ? fmt::format("{:.1f}", 1e3 * median(steps.predicted)) : "",
                     is_predicted ? fmt::format("{:+.1f} %", 100 * error_of(steps)) : "",
                     steps.wire_bytes > 0 ? format_bytes(static_cast<double>(steps.wire_bytes)) : "");
}

}  // namespace syncopate::tools::bench
