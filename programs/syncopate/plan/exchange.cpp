// Exchanges with a codec: options, and the law of a profile's gradients.
#include "plan/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "report/record/jsonl.hpp"
#include "report/record/run.hpp"
#include "syncopate/error.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::tools::plan {
namespace {

using report::record::SentGradient;

/// The divisor of `elements` that is nearest to their root from below, or `elements` of a prime.
std::size_t rows_of(const ProfileLayer& layer, std::size_t elements) {
  if (layer.rows > 0 && elements % layer.rows == 0) return layer.rows;
  auto rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(elements)));
  while (rows > 1 && elements % rows != 0) --rows;
  return rows > 1 ? rows : elements;
}

/// The gradients that the last evaluation of a run lists.
std::vector<SentGradient> sent_in(const std::string& file) {
  std::vector<SentGradient> sent;
  report::record::read_rows(file, [&](const nlohmann::json& row) {
    if (row.contains("sent")) sent = report::record::sent_of(row);
  });
  if (sent.empty())
    throw Misuse(
        fmt::format("--density: {} has no row with densities; allowed: the rows of a `syncopate train` run "
                    "with a codec that selects elements (rank-0.jsonl of --out, or the output of --json) that "
                    "evaluated once",
                    file));
  return sent;
}

/// The share of the gradient of the layer's name, or of "LAYER.weight" and "LAYER.bias"; 0: not known.
double density_of(const std::string& layer, std::vector<SentGradient> sent) {
  std::erase_if(sent, [&](const SentGradient& of) {
    return of.gradient != layer && of.gradient.substr(0, of.gradient.rfind('.')) != layer;
  });
  return sent.empty() ? 0 : report::record::density_of(sent);
}

/// By layer of the profile; 0: not known.
std::function<double(const std::string& layer)> densities_of(const std::string& text) {
  if (text.empty()) return [](const std::string&) { return 0.0; };
  double all = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), all);
  if (error != std::errc() || end != text.data() + text.size())
    return [sent = sent_in(text)](const std::string& layer) { return density_of(layer, sent); };
  if (!(all > 0 && all <= 1))
    throw Misuse(fmt::format("--density {}; allowed: above 0, at most 1, or the rows of a run", text));
  return [all](const std::string&) { return all; };
}

}  // namespace

void add_exchange(CLI::App& app, ExchangeChoice& choice) {
  app.add_option("--codec", choice.codec, "How gradients are encoded: NAME or NAME:PARAMETER (`syncopate info`)")
      ->capture_default_str();
  app.add_option(
         "--density", choice.density,
         "Share of the elements that a codec with a fixed threshold sends: a number, or FILE, the rows of a run "
         "(rank-0.jsonl of its --out), with the share of each gradient")
      ->type_name("SHARE|FILE");
  app.add_option("--exchange", choice.exchange, "How ranks combine them (`syncopate info`)")->capture_default_str();
}

ExchangeLawOf law_of(const ExchangeChoice& choice, const Profile& profile, const Cluster& cluster,
                     const std::string& algorithm) {
  if (choice.is_plain()) return {};
  const auto density = densities_of(choice.density);
  std::vector<Gradient> gradients;
  for (const ProfileLayer& layer : profile.layers) {
    const std::size_t elements = layer.bytes / sizeof(float);
    gradients.push_back(
        {.name = layer.name, .elements = elements, .rows = rows_of(layer, elements), .density = density(layer.name)});
  }
  const SynchronizerOptions options{.codec = choice.codec, .exchange = choice.exchange, .algorithm = algorithm};
  const auto law = [gradients, options, cluster](int ranks, int ranks_per_host) {
    Cluster here = cluster;
    here.ranks = ranks;
    here.ranks_per_host = ranks_per_host;
    return exchange_law(gradients, options, here);
  };
  static_cast<void>(law(cluster.ranks, cluster.ranks_per_host));  // unknown names throw at once
  return law;
}

std::vector<std::string> doubts_of(const ExchangeChoice& choice, const ExchangeLawOf& law) {
  std::vector<std::string> doubts;
  if (!law) return doubts;
  const ExchangeLaw of_one = law(1, 1);
  if (!of_one.coding_is_known)
    doubts.push_back(fmt::format(
        "the cluster file has no times of codec {}, and 0 s are assumed; `syncopate fit --codec {}` measures it",
        choice.codec, choice.codec));
  if (!of_one.density_is_known)
    doubts.push_back(
        fmt::format("the share of elements that codec {} sends depends on the gradients, and 1 to 1.5 % are assumed; "
                    "give the share or the rows of a run by --density",
                    choice.codec));
  return doubts;
}

}  // namespace syncopate::tools::plan
