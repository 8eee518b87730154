// The part of the command line that says what is trained: a model, its data, its sizes.
#include "model_options.hpp"

#include <CLI/CLI.hpp>

#include "arguments.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::train {
namespace {

std::string model_names() {
  std::string all;
  for (const Model* model : models()) all += (all.empty() ? "" : ", ") + std::string(model->name);
  return all;
}

/// A limit; 0 would be none.
void add_bytes(CLI::App& app, const char* name, std::uint64_t& bytes, const char* what) {
  app.add_option_function<std::string>(
         name, [&bytes](const std::string& word) { bytes = parse_bytes(word); }, what)
      ->type_name("BYTES")
      ->check(tools::byte_size(1));
}

void add_cache_options(CLI::App& app, Options& o) {
  add_bytes(app, "--cache", o.cache_bytes, "images: memory of this rank for encoded ones, which all ranks share: 4GiB");
  app.add_option("--cache-folder", o.cache_folder,
                 "images: a folder on this host's own disk for them; with --cache-disk");
  add_bytes(app, "--cache-disk", o.cache_disk_bytes, "bytes of --cache-folder for this rank: 100GiB");
  add_bytes(app, "--origin-rate", o.origin_rate,
            "bytes a second that each rank reads of --data at most, as from a network file system, for comparison");
}

}  // namespace

void add_model_options(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, model_names())->required();
  app.add_option("--data", o.data, "folder of images (`syncopate info format`), or a text file or folder");
  app.add_option("--resolution", o.resolution,
                 "images are scaled to so many pixels each way (default: the images' own size; if they differ, and for "
                 "a profile: the model's)")
      ->check(tools::between(1, 4096));
  app.add_option("--input-threads", o.input_threads, "images: threads per rank that read ahead and decode")
      ->capture_default_str()
      ->check(tools::between(1, 1024));
  app.add_option_function<std::string>(
         "--corrupt", [&o](const std::string& word) { o.stop_on_corrupt = word == "stop"; },
         "an image that cannot be decoded is named, and: skip (the next one stands for it, the default) or stop")
      ->check(tools::one_of("--corrupt", {"skip", "stop"}));
  add_cache_options(app, o);
  app.add_option("--layers", o.sizes.layers, "transformer: blocks")
      ->capture_default_str()
      ->check(tools::between(1, 1000));
  app.add_option("--width", o.sizes.width, "transformer: width")
      ->capture_default_str()
      ->check(tools::between(1, 65536));
  app.add_option("--heads", o.sizes.heads, "transformer: attention heads")
      ->capture_default_str()
      ->check(tools::between(1, 1024));
  app.add_option("--context", o.sizes.context, "transformers: bytes they look at")
      ->capture_default_str()
      ->check(tools::between(1, 65536));
  app.add_flag("--auxiliary", o.sizes.auxiliary, "googlenet: with the two classifiers in its middle");
}

}  // namespace syncopate::train
