// Exchanges with a codec: their options, and the densities of a run.
#include "plan/exchange.hpp"

#include <fmt/format.h>

#include <charconv>
#include <functional>

#include "report/record/jsonl.hpp"
#include "report/record/run.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::plan {
namespace {

using report::record::SentGradient;

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
  if (text.empty()) return {};
  double all = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), all);
  if (error != std::errc() || end != text.data() + text.size())
    return [sent = sent_in(text)](const std::string& layer) { return density_of(layer, sent); };
  if (!(all > 0 && all <= 1))
    throw Misuse(fmt::format("--density {}; allowed: above 0, at most 1, or the rows of a run", text));
  return [all](const std::string&) { return all; };
}

}  // namespace

void add_exchange(CLI::App& app, ExchangeOptions& options) {
  app.add_option("--codec", options.codec, "How gradients are encoded: NAME or NAME:PARAMETER (`syncopate info`)")
      ->capture_default_str();
  app.add_option(
         "--density", options.density,
         "Share of the elements that a codec with a fixed threshold sends: a number, or FILE, the rows of a run "
         "(rank-0.jsonl of its --out), with the share of each gradient")
      ->type_name("SHARE|FILE");
  app.add_option("--exchange", options.exchange, "How ranks combine them (`syncopate info`)")->capture_default_str();
}

ExchangeChoice choice_of(const ExchangeOptions& options) {
  return {.codec = options.codec, .exchange = options.exchange, .density = densities_of(options.density)};
}

}  // namespace syncopate::tools::plan
