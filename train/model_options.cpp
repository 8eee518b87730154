// The part of the command line that says what is trained: a model, its data, its sizes.
#include "model_options.hpp"

#include <CLI/CLI.hpp>

#include "syncopate/tooling/names.hpp"

namespace syncopate::train {
namespace {

std::string model_names() {
  std::string all;
  for (const Model* model : models()) all += (all.empty() ? "" : ", ") + std::string(model->name);
  return all;
}

}  // namespace

void add_model_options(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, model_names())->required();
  app.add_option("--data", o.data, "CIFAR-10 folder (binary format), or a text file or folder");
  app.add_option("--resolution", o.resolution,
                 "images are scaled to so many pixels each way (default: as --data has them; profile: the model's own)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--layers", o.sizes.layers, "transformer: blocks")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--width", o.sizes.width, "transformer: width")->capture_default_str()->check(CLI::Range(1, 65536));
  app.add_option("--heads", o.sizes.heads, "transformer: attention heads")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--context", o.sizes.context, "transformers: bytes they look at")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  app.add_flag("--auxiliary", o.sizes.auxiliary, "googlenet: with the two classifiers in its middle");
}

}  // namespace syncopate::train
