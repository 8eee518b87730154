// Images as batches of tensors: views of the pipeline's memory, without a copy.
#include "data/data.hpp"
#include "data/reader.hpp"

namespace syncopate::train {
namespace {

Batch tensors_of(input::PictureBatch pictures) {
  const auto n = static_cast<std::int64_t>(pictures.count()), side = static_cast<std::int64_t>(pictures.side);
  float* const pixels = pictures.pixels.get();
  Batch batch;
  batch.input = at::from_blob(
      pixels, {n, 3, side, side}, [owner = std::move(pictures.pixels)](void*) {},
      at::TensorOptions().dtype(at::kFloat));
  batch.target = at::tensor(pictures.labels, at::TensorOptions().dtype(at::kLong));
  batch.waited_s = pictures.waited_s;
  batch.refused = std::move(pictures.refused);
  return batch;
}

class Prepared final : public Batches {
 public:
  Prepared(const input::Dataset& set, std::shared_ptr<const input::Source> source,
           std::unique_ptr<input::Reader> reader, const input::PipelineOptions& options)
      : pipeline_(set, std::move(source), std::move(reader), options) {}
  Prepared(const input::Dataset& set, std::unique_ptr<SampleReader> reader, const input::PipelineOptions& options)
      : counted_(reader.get()), pipeline_(set, set.training, std::move(reader), options) {}
  void start(const input::Progress& from, input::Pipeline::Plan plan) { pipeline_.start(from, std::move(plan)); }
  Batch next() override { return tensors_of(pipeline_.next()); }
  std::vector<cache::Counters> tiers() const override {
    return counted_ != nullptr ? counted_->counters() : std::vector<cache::Counters>{};
  }

 private:
  const SampleReader* const counted_ = nullptr;  ///< owned by the pipeline
  input::Pipeline pipeline_;
};

/// Reads held-out samples in order: a step begins at the sample `at.sample` places after the first of `mine`.
class HeldOutReader final : public input::Reader {
 public:
  HeldOutReader(const input::Source& source, const HeldOut& held_out) : source_(source), held_out_(held_out) {}
  std::vector<input::Record> read(const input::Step& step) override {
    std::vector<input::Record> records(std::min(step.batch, held_out_.mine.size() - step.at.sample));
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::size_t place = held_out_.mine.begin + step.at.sample + i;
      const std::size_t sample = place * source_.records() / held_out_.count;
      records[i] = {static_cast<std::uint32_t>(sample), std::vector<std::byte>(source_.bytes(sample))};
      source_.read(sample, records[i].bytes);
    }
    return records;
  }

 private:
  const input::Source& source_;
  const HeldOut held_out_;
};

class Pictures final : public Data {
 public:
  Pictures(input::Dataset set, const Options& options, int own_side)
      : set_(std::move(set)),
        own_side_(own_side),
        options_{.threads = options.input_threads,
                 .augment = options.augment,
                 .on_corrupt = options.stop_on_corrupt ? input::OnCorrupt::stop : input::OnCorrupt::skip},
        words_(options) {}

  int side(int resolution) const override { return resolution > 0 ? resolution : own_side_; }
  int classes() const override { return set_.side > 0 ? 0 : static_cast<int>(set_.classes.size()); }
  std::span<const std::string> class_names() const override { return set_.classes; }
  std::size_t training_samples() const override { return set_.training->records(); }
  std::size_t evaluation_samples() const override { return set_.evaluation->records(); }

  std::unique_ptr<Batches> training(const RunSteps& steps) const override {
    input::PipelineOptions options = options_;
    options.seed = steps.reader.seed;
    options.least_side = steps.least_side;
    auto batches =
        std::make_unique<Prepared>(set_, reader_of(steps.group, *set_.training, steps.reader, words_), options);
    batches->start(steps.from, steps.plan);
    return batches;
  }

  std::unique_ptr<Batches> evaluation(const HeldOut& held_out) const override {
    input::PipelineOptions options = options_;
    options.augment = false;
    auto batches = std::make_unique<Prepared>(set_, set_.evaluation,
                                              std::make_unique<HeldOutReader>(*set_.evaluation, held_out), options);
    const std::size_t steps = (held_out.mine.size() + held_out.batch - 1) / held_out.batch;
    batches->start({}, [=](const input::Progress& at) {
      return at.step < steps ? std::optional(input::StepPlan{held_out.batch, held_out.side}) : std::nullopt;
    });
    return batches;
  }

 private:
  const input::Dataset set_;
  const int own_side_;  ///< pixels, unless the command line gives a size
  const input::PipelineOptions options_;
  const Options& words_;
};

}  // namespace

std::unique_ptr<Data> open_pictures(const Model& model, const Options& options, const std::string& folder) {
  input::Dataset set = input::open_dataset(folder);
  const int own_side = set.side > 0 ? set.side : model.side;
  return std::make_unique<Pictures>(std::move(set), options, own_side);
}

}  // namespace syncopate::train
