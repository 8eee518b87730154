// Text as bytes: one long string of all files, cut into samples of `context` bytes that each predict their successor.
#include <algorithm>

#include "data/data.hpp"
#include "data/files.hpp"
#include "require.hpp"

namespace syncopate::train {
namespace {

class Text final : public Data {
 public:
  Text(std::vector<std::uint8_t> text, std::size_t context) : text_(std::move(text)), context_(context) {
    const std::size_t samples = (text_.size() - 1) / context_;
    held_out_ = std::max<std::size_t>(1, samples / 20);
    training_ = samples - held_out_;
  }

  int side() const override { return 0; }
  std::size_t training_samples() const override { return training_; }
  std::size_t evaluation_samples() const override { return held_out_; }
  Batch training(Samples samples, const Augmentation&) const override { return batch(samples, 0); }
  Batch evaluation(Samples samples) const override { return batch(samples, training_); }

 private:
  Batch batch(Samples samples, std::size_t first) const {
    const auto n = static_cast<std::int64_t>(samples.size()), length = static_cast<std::int64_t>(context_);
    Batch result{at::empty({n, length}, at::kLong), at::empty({n * length}, at::kLong)};
    std::int64_t* input = result.input.data_ptr<std::int64_t>();
    std::int64_t* target = result.target.data_ptr<std::int64_t>();
    for (const std::uint32_t sample : samples) {
      const std::uint8_t* const text = text_.data() + (first + sample) * context_;
      input = std::copy(text, text + context_, input);
      target = std::copy(text + 1, text + 1 + context_, target);
    }
    return result;
  }

  std::vector<std::uint8_t> text_;
  std::size_t context_, held_out_ = 0, training_ = 0;
};

}  // namespace

std::unique_ptr<Data> open_text(const std::string& path, int context) {
  std::vector<std::uint8_t> text;
  for (const std::filesystem::path& file : files_below(path)) append_file(file, text);
  const auto length = static_cast<std::size_t>(context);
  require(text.size() > 2 * length, "--data {} has {} bytes of text; --context {} needs at least {}", path, text.size(),
          context, 2 * length + 1);
  return std::make_unique<Text>(std::move(text), length);
}

std::unique_ptr<Data> open_data(const Model& model, const std::string& path, int context) {
  const bool images = !cifar10_folder(path).empty();
  if (model.input == DataKind::images) {
    std::error_code ignored;
    require(std::filesystem::exists(path, ignored), "--data {}: there is no such file or folder", path);
    require(images,
            "--data {} is no CIFAR-10 folder, and {} trains on images (text trains --model transformer; "
            "`syncopate data draw` draws images)",
            path, model.name);
    return open_cifar10(path);
  }
  require(!images,
          "--data {} holds CIFAR-10 images, and {} trains on text (images train resnet20, resnet110, vgg11, mlp)", path,
          model.name);
  return open_text(path, context);
}

}  // namespace syncopate::train
