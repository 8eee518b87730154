// Exchanges with a codec: options, and the law of a profile's gradients.
#include "plan/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "syncopate/synchronizer.hpp"

namespace syncopate::tools::plan {
namespace {

/// The divisor of `elements` that is nearest to their root from below, or `elements` of a prime.
std::size_t rows_of(const ProfileLayer& layer, std::size_t elements) {
  if (layer.rows > 0 && elements % layer.rows == 0) return layer.rows;
  auto rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(elements)));
  while (rows > 1 && elements % rows != 0) --rows;
  return rows > 1 ? rows : elements;
}

}  // namespace

void add_exchange(CLI::App& app, ExchangeChoice& choice) {
  app.add_option("--codec", choice.codec, "How gradients are encoded: NAME or NAME:PARAMETER (`syncopate info`)")
      ->capture_default_str();
  app.add_option("--exchange", choice.exchange, "How ranks combine them (`syncopate info`)")->capture_default_str();
}

ExchangeLawOf law_of(const ExchangeChoice& choice, const Profile& profile, const Cluster& cluster,
                     const std::string& algorithm) {
  if (choice.is_plain()) return {};
  std::vector<Gradient> gradients;
  for (const ProfileLayer& layer : profile.layers) {
    const std::size_t elements = layer.bytes / sizeof(float);
    gradients.push_back({.name = layer.name, .elements = elements, .rows = rows_of(layer, elements)});
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

std::string doubt_of_coding(const ExchangeChoice& choice, const ExchangeLawOf& law) {
  if (!law || law(1, 1).coding_is_known) return {};
  return fmt::format(
      "the cluster file has no times of codec {}, and 0 s are assumed; `syncopate fit --codec {}` "
      "measures it",
      choice.codec, choice.codec);
}

}  // namespace syncopate::tools::plan
