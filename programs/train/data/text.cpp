// Text as bytes: all files as one string, cut into samples of `context` bytes; each byte predicts its successor.
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

  int side(int) const override { return 0; }
  int classes() const override { return 0; }
  std::span<const std::string> class_names() const override { return {}; }
  std::size_t training_samples() const override { return training_; }
  std::size_t evaluation_samples() const override { return held_out_; }
  std::unique_ptr<Batches> training(const RunSteps& steps) const override;
  std::unique_ptr<Batches> evaluation(const HeldOut& held_out) const override;

  Batch batch(std::span<const std::uint32_t> samples, std::size_t first) const {
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

 private:
  std::vector<std::uint8_t> text_;
  std::size_t context_, held_out_ = 0, training_ = 0;
};

class TrainingText final : public Batches {
 public:
  TrainingText(const Text& text, const RunSteps& steps)
      : text_(text), steps_(steps), at_(steps.from), order_(text.training_samples(), steps.reader.seed) {}
  Batch next() override {
    const auto& [rank, ranks, seed] = steps_.reader;
    const std::size_t batch = steps_.plan(at_).value_or(input::StepPlan{}).batch;
    require(batch > 0, "this run has no step {}", at_.step + 1);
    const input::SampleShare share = order_.share(at_, batch, rank, ranks);
    input::advance(at_, share.total, order_.samples());
    return text_.batch(share.mine, 0);
  }

 private:
  const Text& text_;
  const RunSteps steps_;
  input::Progress at_;
  input::Order order_;
};

class HeldOutText final : public Batches {
 public:
  HeldOutText(const Text& text, const HeldOut& held_out) : text_(text), held_out_(held_out) {}
  Batch next() override {
    std::vector<std::uint32_t> samples(std::min(held_out_.batch, held_out_.mine.size() - taken_));
    for (std::uint32_t& sample : samples)
      sample =
          static_cast<std::uint32_t>((held_out_.mine.begin + taken_++) * text_.evaluation_samples() / held_out_.count);
    return text_.batch(samples, text_.training_samples());
  }

 private:
  const Text& text_;
  const HeldOut held_out_;
  std::size_t taken_ = 0;
};

std::unique_ptr<Batches> Text::training(const RunSteps& steps) const {
  return std::make_unique<TrainingText>(*this, steps);
}
std::unique_ptr<Batches> Text::evaluation(const HeldOut& held_out) const {
  return std::make_unique<HeldOutText>(*this, held_out);
}

}  // namespace

std::unique_ptr<Data> open_text(const std::string& path, int context) {
  std::vector<std::uint8_t> text;
  for (const std::filesystem::path& file : files_below(path)) append_file(file, text);
  const auto length = static_cast<std::size_t>(context);
  require(text.size() > 2 * length, "--data {} has {} bytes of text; --context {} needs at least {}", path, text.size(),
          context, 2 * length + 1);
  return std::make_unique<Text>(std::move(text), length);
}

}  // namespace syncopate::train
