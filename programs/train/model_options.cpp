// Options that state what is trained: a model, its data, its sizes.
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

/// Adds a limit in bytes, at least 1.
void add_bytes(CLI::App& app, const char* name, std::uint64_t& bytes, const char* what) {
  app.add_option_function<std::string>(
         name, [&bytes](const std::string& word) { bytes = parse_bytes(word); }, what)
      ->type_name("BYTES")
      ->check(tools::byte_size(1));
}

void add_cache_options(CLI::App& app, Options& o) {
  add_bytes(app, "--cache", o.cache_bytes,
            "images: memory of this rank in the cache of encoded images that all ranks share, such as 4GiB");
  app.add_option("--cache-folder", o.cache_folder, "images: folder on a local disk for the cache; needs --cache-disk");
  add_bytes(app, "--cache-disk", o.cache_disk_bytes, "bytes of --cache-folder for this rank, such as 100GiB");
  add_bytes(app, "--cache-decoded", o.cache_decoded_bytes,
            "JPEG and PNG images: more memory of this rank, for decoded images of the cache, such as 16GiB");
  add_bytes(app, "--origin-rate", o.origin_rate,
            "limit of bytes per second that each rank reads from --data, to emulate a network file system");
}

}  // namespace

void add_model_options(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, model_names())->required();
  app.add_option(
      "--data", o.data,
      "folder of images (`syncopate info format`), fashion-mnist (installed by scripts/install --data), or a "
      "text file or folder");
  app.add_option(
         "--resolution", o.resolution,
         "images are scaled to this many pixels each way (default: the images' own size; if they differ, and for "
         "a profile: the model's)")
      ->check(tools::between(1, 4096));
  app.add_option("--input-threads", o.input_threads, "images: threads per rank that read ahead and decode")
      ->capture_default_str()
      ->check(tools::between(1, 1024));
  app.add_option_function<std::string>(
         "--corrupt", [&o](const std::string& word) { o.stop_on_corrupt = word == "stop"; },
         "for an image that cannot be decoded (its name is logged): skip (use the next image; the default) or stop")
      ->check(tools::one_of("--corrupt", {"skip", "stop"}));
  add_cache_options(app, o);
  app.add_option("--layers", o.sizes.layers, "transformer: blocks")
      ->capture_default_str()
      ->check(tools::between(1, 1000));
  app.add_option("--width", o.sizes.width,
                 "transformer: width (default 256); mlp: width of the hidden layers (default 2048)")
      ->check(tools::between(1, 65536));
  app.add_option("--heads", o.sizes.heads, "transformer: attention heads")
      ->capture_default_str()
      ->check(tools::between(1, 1024));
  app.add_option("--context", o.sizes.context, "transformers: context length in bytes")
      ->capture_default_str()
      ->check(tools::between(1, 65536));
  app.add_flag("--auxiliary", o.sizes.auxiliary, "googlenet, googlenet32: with the two classifiers in their middle");
}

}  // namespace syncopate::train
