// Rows of exchanges: merging the steps of all rounds, the model, and how they are shown.
#include "bench/exchange/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/rows.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

ExchangeRows::ExchangeRows(const std::vector<ExchangeSubject>& subjects, const ExchangePlace& place, double bits_per_s)
    : place_(place), bits_per_s_(bits_per_s) {
  for (const ExchangeSubject& subject : subjects) series_.push_back({.subject = subject});
}

bool ExchangeRows::take(const std::string& line, bool shaped) {
  const nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
  if (!row.is_object() || !row.contains("block_seconds")) return false;
  const auto found = std::ranges::find_if(series_, [&](const Series& series) {
    return series.subject.exchange == row.at("exchange") && series.subject.codec == row.at("codec") &&
           series.subject.algorithm == row.at("algorithm");
  });
  if (found == series_.end()) return false;
  const auto seconds = row.at("block_seconds").get<std::vector<double>>();
  std::vector<double>& into = shaped ? found->seconds : found->local;
  into.insert(into.end(), seconds.begin(), seconds.end());
  found->correct = found->correct && row.at("correct").get<bool>();
  if (shaped) found->port_bytes = std::max(found->port_bytes, row.at("port_bytes").get<double>());
  return true;
}

bool ExchangeRows::all_correct() const {
  return std::ranges::all_of(series_, [](const Series& series) { return series.correct && !series.seconds.empty(); });
}

double ExchangeRows::law_seconds(const ExchangeSubject& subject, IndexLaw law) const {
  return port_bytes(subject, place_, law) * 8 / bits_per_s_ * kEthernetHeaders;
}

/// With a codec the legs are sequential: the work within hosts, then the packets on the wire. Dense gradients overlap:
/// some segments are on the wire while others are reduced.
double ExchangeRows::model_seconds(const Series& series) const {
  const double wire = law_seconds(series.subject, IndexLaw::coded), local = median(series.local);
  return series.subject.dense() ? std::max(wire, local) : wire + local;
}

std::vector<nlohmann::json> ExchangeRows::json() const {
  std::vector<nlohmann::json> rows;
  for (const Series& series : series_) {
    const ExchangeSubject& subject = series.subject;
    rows.push_back({{"exchange", subject.exchange},
                    {"codec", subject.codec},
                    {"algorithm", subject.algorithm},
                    {"hosts", place_.hosts},
                    {"ranks", place_.ranks()},
                    {"elements", place_.elements},
                    {"density", subject.density},
                    {"seconds", timing(series.seconds)},
                    {"model_seconds", model_seconds(series)},
                    {"ratio", median(series.seconds) / model_seconds(series)},
                    {"local_seconds", median(series.local)},
                    {"wire_model_seconds", law_seconds(subject, IndexLaw::coded)},
                    {"pairs_model_seconds", law_seconds(subject, IndexLaw::pairs)},
                    {"wire_bytes", series.port_bytes},
                    {"correct", series.correct}});
  }
  return rows;
}

std::string ExchangeRows::table() const {
  std::string text = fmt::format("{:<14}{:<14}{:<10}{:>30}{:>9}{:>11}{:>10}{:>11}{:>13}{:>12}{:>8}\n", "exchange",
                                 "codec", "algorithm", "median (min .. max)", "x model", "model", "in hosts",
                                 "wire law", "32-bit law", "port sent", "answer");
  for (const Series& series : series_) {
    const auto [low, high] = std::ranges::minmax(series.seconds);
    text += fmt::format(
        "{:<14}{:<14}{:<10}{:>30}{:>9.3f}{:>11}{:>10}{:>11}{:>13}{:>12}{:>8}\n", series.subject.exchange,
        series.subject.codec, series.subject.algorithm,
        fmt::format("{} ({} .. {})", format_seconds(median(series.seconds)), format_seconds(low), format_seconds(high)),
        median(series.seconds) / model_seconds(series), format_seconds(model_seconds(series)),
        format_seconds(median(series.local)), format_seconds(law_seconds(series.subject, IndexLaw::coded)),
        format_seconds(law_seconds(series.subject, IndexLaw::pairs)), format_bytes(series.port_bytes),
        series.correct ? "right" : "WRONG");
  }
  const auto line = [](const char* what, int parts) {
    return fmt::format("{} sends less up to a density of {:.3g} with coded indices, {:.3g} with 32-bit ones\n", what,
                       break_even(parts, IndexLaw::coded), break_even(parts, IndexLaw::pairs));
  };
  return text + line("hierarchical top-k against the dense torus", place_.hosts) +
         line("flat top-k against the dense ring", place_.ranks());
}

}  // namespace syncopate::tools::bench
