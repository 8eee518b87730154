// Opens the data that a model trains on, and cuts batches.
#include "data/data.hpp"

#include <filesystem>

#include "require.hpp"

namespace syncopate::train {
namespace {

/// The path of --data.
std::string path_of(const std::string& data) {
  constexpr const char* kPackaged = "/usr/share/datasets/fashion-mnist";  // by Debian's dataset-fashion-mnist
  std::error_code ignored;
  if (data != "fashion-mnist" || std::filesystem::exists(data, ignored)) return data;
  require(std::filesystem::exists(kPackaged, ignored),
          "--data fashion-mnist: {} is missing: run scripts/install --data, or apt-get install dataset-fashion-mnist; "
          "also allowed: --data FOLDER with its four files",
          kPackaged);
  return kPackaged;
}

}  // namespace

Batch part_of(const Batch& batch, const Range& samples) {
  const std::int64_t n = batch.input.size(0), answers = n > 0 ? batch.target.size(0) / n : 0;
  const auto begin = static_cast<std::int64_t>(samples.begin), count = static_cast<std::int64_t>(samples.size());
  return {batch.input.narrow(0, begin, count), batch.target.narrow(0, begin * answers, count * answers)};
}

std::unique_ptr<Data> open_data(const Model& model, const Options& options) {
  const std::string path = path_of(options.data);
  const bool pictures = input::is_dataset(path);
  std::error_code ignored;
  require(std::filesystem::exists(path, ignored), "--data {}: there is no such file or folder", path);
  if (model.input == DataKind::images) {
    require(pictures,
            "--data {} holds no images (`syncopate info format` lists the layouts), and {} trains on images (text "
            "trains --model transformer; `syncopate data draw` makes images)",
            path, model.name);
    return open_pictures(model, options, path);
  }
  require(!pictures, "--data {} holds images, and {} trains on text (images train lenet, resnet20, vgg11 and others)",
          path, model.name);
  return open_text(path, options.sizes.context);
}

}  // namespace syncopate::train
