// Curves: reading values out of rows.
#include "figure/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "syncopate/tooling/json.hpp"

namespace syncopate::tools::figure {

namespace {

std::optional<Sample> sample_of(const nlohmann::json& row, const Choice& choice) {
  const auto x = row.find(choice.x), y = row.find(choice.y);
  if (x == row.end() || y == row.end() || !x->is_number()) return std::nullopt;
  if (y->is_number()) return Sample{x->get<double>(), y->get<double>(), y->get<double>(), y->get<double>()};
  if (!y->is_object() || !y->contains("median") || !y->at("median").is_number()) return std::nullopt;
  const double median = y->at("median").get<double>();
  return Sample{x->get<double>(), median, y->value("min", median), y->value("max", median)};
}

std::string label_of(const nlohmann::json& row, const Choice& choice) {
  std::string label;
  for (const std::string& key : choice.by) {
    const auto found = row.find(key);
    if (found == row.end() || found->is_null()) continue;
    label += (label.empty() ? "" : " ") + (found->is_string() ? found->get<std::string>() : text_of_json(*found));
  }
  return label;
}

void put(Curve& curve, const Sample& sample) {
  const auto place = std::ranges::lower_bound(curve.samples, sample.x, {}, &Sample::x);
  if (place != curve.samples.end() && place->x == sample.x)
    *place = sample;
  else
    curve.samples.insert(place, sample);
}

}  // namespace

std::vector<Curve> curves_of(const std::vector<nlohmann::json>& rows, const Choice& choice) {
  std::vector<Curve> curves;
  for (const nlohmann::json& row : rows) {
    const auto sample = sample_of(row, choice);
    if (!sample) continue;
    const std::string label = label_of(row, choice);
    auto found = std::ranges::find(curves, label, &Curve::label);
    if (found == curves.end()) found = curves.insert(curves.end(), Curve{label, {}});
    put(*found, *sample);
  }
  return curves;
}

}  // namespace syncopate::tools::figure
