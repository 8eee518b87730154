// The thesis' replay: predictions for its contenders, and rows that compare them with measurements.
#include "bench/server/thesis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "bench/rows.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

constexpr char kAlone[] = "alone";

Profile profile_of(const ReplayedModel& model, double dilation) {
  const std::vector<LayerWork> layers = layers_of_architecture(model.name);
  double flops = 0;
  for (const LayerWork& layer : layers) flops += layer.flops;
  return derive_profile(model.name, layers, 3 * flops / (model.step_s * dilation), 1);
}

}  // namespace

// 13.5 and 1.47 steps a second on a GTX 1080: modular parameter server thesis, Table 1.1. It prints none of GoogLeNet
// (Fig. 5.1), whose 32 images take 88 ms at the operations a second of Inception-v4.
ReplayedModel replayed_model(const std::string& name) {
  if (name == "resnet110") return {name, 0.074};
  if (name == "googlenet") return {name, 0.088};
  if (name == "inception_v4_slim") return {name, 0.680};
  throw Misuse(fmt::format("the thesis has no model '{}'; allowed: resnet110, googlenet, inception_v4_slim", name));
}

const std::vector<ReplayedContender>& replayed_contenders() {
  static const std::vector<ReplayedContender> contenders{
      {kAlone, kAlone},
      {"traditional", "traditional"},
      {"wait_free", "wait_free"},
      {"front_first", "front_first"},
      {"ssp", "front_first", "ssp:5"},
      {"codec", "front_first", "bsp", "topk:0.01", "topk:0.01"},
      {"combined", "front_first", "ssp:5", "topk:0.01", "topk:0.01"}};
  return contenders;
}

std::vector<ReplayedContender> replayed_contenders(const std::vector<std::string>& names) {
  if (names == std::vector<std::string>{"all"}) return replayed_contenders();
  std::vector<ReplayedContender> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(replayed_contenders(), name, &ReplayedContender::name);
    if (found == replayed_contenders().end())
      throw Misuse(
          fmt::format("the thesis' replay has no contender '{}'; allowed: all, {}", name,
                      fmt::join(replayed_contenders() | std::views::transform(&ReplayedContender::name), ", ")));
    chosen.push_back(*found);
  }
  if (chosen.empty()) throw Misuse("--contenders is empty; give names such as alone,traditional");
  return chosen;
}

ServerSimulation predicted(const ReplayedModel& model, const ReplayedContender& contender, const ReplayScene& scene) {
  const Profile profile = profile_of(model, scene.dilation);
  const bool is_alone = contender.flow == kAlone;
  const Cluster cluster{
      .ranks = is_alone ? 1 : scene.workers,
      .inter =
          LinkCost{.alpha_s = 0, .beta_s_per_byte = 8 * kEthernetHeaders / scene.bits_per_s, .gamma_s_per_byte = 0}};
  return simulate_servers(profile, cluster, {.policies = {is_alone ? "front_first" : contender.flow}},
                          {.servers = is_alone ? 1 : scene.servers,
                           .placement = scene.placement,
                           .consistency = contender.consistency,
                           .update_bytes = expected_updates(profile, contender.codec),
                           .answer_bytes = expected_answers(profile, contender.answers)})
      .at(0);
}

const ReplayedContender& ReplayRows::contender_of(const std::string& name) const {
  const auto found = std::ranges::find(replayed_contenders(), name, &ReplayedContender::name);
  if (found == replayed_contenders().end()) throw Corrupt(fmt::format("a replay's row is of no contender: '{}'", name));
  return *found;
}

bool ReplayRows::take(const std::string& line) try {
  const nlohmann::json raw = nlohmann::json::parse(line, nullptr, false);
  if (!raw.is_object() || !raw.contains("block_seconds")) return false;
  const std::string contender = raw.at("contender"), model = raw.at("model");
  const std::vector<double> seconds = raw.at("block_seconds");
  const double pushed = raw.at("pushed_bytes"), pulled = raw.at("pulled_bytes"), stalest = raw.at("stalest");
  const bool correct = raw.at("correct");
  if (seconds.empty()) throw Corrupt("a replay's row is damaged: it has no steps");
  auto found = std::ranges::find_if(
      series_, [&](const Series& series) { return series.contender.name == contender && series.model.name == model; });
  if (found == series_.end())
    found = series_.insert(found, {.model = replayed_model(model), .contender = contender_of(contender)});
  found->correct = found->correct && correct;
  found->stalest = std::max(found->stalest, stalest);
  found->seconds.insert(found->seconds.end(), seconds.begin(), seconds.end());
  found->pushed_bytes.push_back(pushed);
  found->pulled_bytes.push_back(pulled);
  return true;
} catch (const nlohmann::json::exception& error) {
  throw Corrupt(fmt::format("a replay's row is damaged: {}", error.what()));
} catch (const Misuse& error) {
  throw Corrupt(fmt::format("a replay's row is damaged: {}", error.what()));
}

bool ReplayRows::all_correct() const { return std::ranges::all_of(series_, &Series::correct); }

std::vector<nlohmann::json> ReplayRows::json() const {
  std::vector<nlohmann::json> rows;
  for (const ReplayedContender& contender : replayed_contenders())
    for (const Series& row : series_) {
      if (row.contender.name != contender.name) continue;
      const auto alone = std::ranges::find_if(series_, [&](const Series& other) {
        return other.model.name == row.model.name && other.contender.name == kAlone;
      });
      const int workers = contender.flow == kAlone ? 1 : scene_.workers;
      const ServerSimulation prediction = predicted(row.model, contender, scene_);
      nlohmann::json speedup;
      if (alone != series_.end()) speedup = workers * median(alone->seconds) / median(row.seconds);
      rows.push_back({{"benchmark", "thesis"},
                      {"compute", "sleep"},
                      {"compute_s", row.model.step_s * scene_.dilation},
                      {"dilation", scene_.dilation},
                      {"model", row.model.name},
                      {"contender", contender.name},
                      {"flow", contender.flow},
                      {"consistency", contender.consistency},
                      {"codec", contender.codec},
                      {"answers", contender.answers},
                      {"placement", scene_.placement},
                      {"workers", workers},
                      {"servers", contender.flow == kAlone ? 0 : scene_.servers},
                      {"step_seconds", timing(row.seconds)},
                      {"speedup", speedup},
                      {"predicted_s", prediction.training.iteration_s},
                      {"predicted_speedup", prediction.training.speedup},
                      {"load_variation", prediction.load_variation},
                      {"pushed_bytes", median(row.pushed_bytes)},
                      {"pulled_bytes", median(row.pulled_bytes)},
                      {"predicted_pushed_bytes", contender.flow == kAlone ? 0 : prediction.pushed_bytes},
                      {"stalest", row.stalest},
                      {"correct", row.correct}});
    }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           [](const nlohmann::json& row) { return row.at("model").get<std::string>(); });
  return rows;
}

std::string ReplayRows::table() const {
  std::string text = fmt::format("{:<18} {:<12}{:>32}{:>9}{:>12}{:>11}{:>11}{:>11}{:>7}{:>8}\n", "model", "contender",
                                 "step, median (min .. max)", "speed-up", "predicted", "speed-up", "pushed", "pulled",
                                 "stale", "answer");
  for (const nlohmann::json& row : json()) {
    const nlohmann::json& step = row.at("step_seconds");
    text += fmt::format("{:<18} {:<12}{:>32}{:>9}{:>12}{:>11.2f}{:>11}{:>11}{:>7}{:>8}\n",
                        row.at("model").get<std::string>(), row.at("contender").get<std::string>(),
                        fmt::format("{} ({} .. {})", format_seconds(step.at("median")), format_seconds(step.at("min")),
                                    format_seconds(step.at("max"))),
                        row.at("speedup").is_null() ? "-" : fmt::format("{:.2f}", row.at("speedup").get<double>()),
                        format_seconds(row.at("predicted_s")), row.at("predicted_speedup").get<double>(),
                        format_bytes(row.at("pushed_bytes")), format_bytes(row.at("pulled_bytes")),
                        row.at("stalest").get<double>(), row.at("correct").get<bool>() ? "right" : "WRONG");
  }
  return text;
}

}  // namespace syncopate::tools::bench
