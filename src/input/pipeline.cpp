// The pipeline: one thread reads steps ahead, others decode their pictures, and steps are returned in order.
//
//   reader ─► steps in order, at most `ahead` ─► workers take pictures in order ─► next() takes the first whole step
#include "syncopate/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <exception>
#include <new>
#include <set>
#include <thread>

#include "base/fork.hpp"
#include "base/mutex.hpp"
#include "base/require.hpp"

namespace syncopate::input {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kReplacements = 64;  ///< samples tried in place of one that cannot be decoded

std::shared_ptr<float> floats(std::size_t count) {
  const std::size_t bytes = std::max<std::size_t>(count * sizeof(float), 1);
  auto* const memory = static_cast<float*>(::operator new (bytes, std::align_val_t{kAlignment}));
  return {memory, [](float* p) { ::operator delete (p, std::align_val_t{kAlignment}); }};
}

}  // namespace

class Pipeline::Work final {
 public:
  Work(const Dataset& set, std::shared_ptr<const Source> source, std::unique_ptr<Reader> reader,
       const PipelineOptions& options)
      : make_decoder_(set.decoder), source_(std::move(source)), reader_(std::move(reader)), options_(options) {
    base::require(options.threads >= 1 && options.threads <= 1024, "{} input threads; allowed: 1 to 1024",
                  options.threads);
    base::require(options.ahead >= 1, "a pipeline of 0 steps; allowed: at least 1");
  }

  ~Work() {
    {
      const base::Lock lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
  }

  void start(const Progress& from, Plan plan) {
    base::require(threads_.empty(), "the pipeline has already started; allowed: one start");
    threads_.emplace_back([this, from, plan = std::move(plan)] { read_steps(from, plan); });
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { decode_pictures(); });
  }

  [[nodiscard]] const base::OwnProcess& process() const noexcept { return process_; }

  PictureBatch next() {
    process_.require("a pipeline");
    base::require(!threads_.empty(), "the pipeline has not started; allowed: next after start");
    const auto begin = std::chrono::steady_clock::now();
    base::Lock lock(mutex_);
    while (!is_first_whole() && !(jobs_.empty() && finished_))
      if (!changed_.wait_until(lock, begin + options_.timeout) && !is_first_whole()) throw_stuck();
    base::require(!jobs_.empty(), "a step after the last one of the plan");
    if (jobs_.front()->error) std::rethrow_exception(jobs_.front()->error);
    const std::shared_ptr<Job> job = jobs_.front();
    jobs_.pop_front();
    for (const auto& [sample, why] : job->refused)
      if (named_.insert(sample).second) job->batch.refused.push_back(fmt::format("{}: {}", source_->name(sample), why));
    lock.unlock();
    changed_.notify_all();
    job->batch.waited_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(job->batch);
  }

 private:
  /// A picture that cannot be decoded.
  struct Refusal {
    std::uint32_t sample = 0;
    std::string why;
  };

  /// One step in progress. `mutex_` guards `left`, `next`, `failed_at`, `error` and `refused`.
  struct Job {
    PictureBatch batch;
    std::vector<Record> records;
    std::size_t next = 0, left = 0;  ///< pictures: the first that no thread has taken, and the number not ready
    std::size_t failed_at = SIZE_MAX;
    std::exception_ptr error;  ///< error of the first picture in order that has one
    std::vector<Refusal> refused;
  };

  void read_steps(Progress at, const Plan& plan) {
    while (has_room()) {
      auto job = std::make_shared<Job>();
      job->batch.at = at;
      try {
        const std::optional<StepPlan> step = plan(at);
        if (!step) break;
        read_step(*step, *job);
        advance(at, std::min(step->batch, source_->records() - at.sample), source_->records());
      } catch (...) {
        job->error = std::current_exception();
        job->left = 0;
      }
      if (!append(job)) return;
    }
    const base::Lock lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

  void read_step(const StepPlan& step, Job& job) {
    base::require(step.batch >= 1 && step.side >= 1, "a step of {} pictures of {} pixels each way; allowed: at least 1",
                  step.batch, step.side);
    base::require(step.side >= options_.least_side, "a step of {} pixels each way; allowed: at least least_side, {}",
                  step.side, options_.least_side);
    job.records = reader_->read({job.batch.at, step.batch});
    const std::size_t count = job.records.size(), side = static_cast<std::size_t>(step.side);
    job.left = count;
    job.batch.side = step.side;
    job.batch.labels.resize(count);
    job.batch.pixels = floats(count * 3 * side * side);
  }

  [[nodiscard]] bool has_room() {
    base::Lock lock(mutex_);
    while (!ends_ && jobs_.size() >= options_.ahead) changed_.wait(lock);
    return !ends_;
  }

  /// False after a failed step: no later one is read.
  [[nodiscard]] bool append(const std::shared_ptr<Job>& job) {
    const bool failed = job->error != nullptr;
    {
      const base::Lock lock(mutex_);
      jobs_.push_back(job);
    }
    changed_.notify_all();
    return !failed;
  }

  void decode_pictures() {
    std::unique_ptr<Decoder> decoder;
    while (true) {
      base::Lock lock(mutex_);
      std::shared_ptr<Job> job;
      while (!ends_ && (job = first_with_work()) == nullptr) changed_.wait(lock);
      if (ends_) return;
      const std::size_t i = job->next++;
      lock.unlock();
      std::exception_ptr error;
      std::vector<Refusal> refused;
      try {
        if (!decoder) decoder = make_decoder_();
        decode(*decoder, *job, i, refused);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && i < job->failed_at) job->error = error, job->failed_at = i;
      std::ranges::move(refused, std::back_inserter(job->refused));
      const bool whole = --job->left == 0;
      if (whole) std::ranges::sort(job->refused, {}, &Refusal::sample);
      lock.unlock();
      if (whole) changed_.notify_all();
    }
  }

  [[nodiscard]] bool is_first_whole() const SYNCOPATE_REQUIRES(mutex_) {
    return !jobs_.empty() && jobs_.front()->left == 0;
  }
  [[noreturn]] void throw_stuck() const SYNCOPATE_REQUIRES(mutex_) {
    const std::string done = jobs_.empty() ? "its records are not read"
                                           : fmt::format("{} of its {} pictures are not decoded", jobs_.front()->left,
                                                         jobs_.front()->batch.count());
    throw SystemFailure(
        fmt::format("the pictures of a step are not ready after {} ms: {}", options_.timeout.count(), done));
  }
  [[nodiscard]] std::shared_ptr<Job> first_with_work() const SYNCOPATE_REQUIRES(mutex_) {
    for (const auto& job : jobs_)
      if (job->next < job->records.size()) return job;
    return nullptr;
  }

  void decode(Decoder& decoder, Job& job, std::size_t i, std::vector<Refusal>& refused) const {
    Record& record = job.records[i];
    const auto side = static_cast<std::size_t>(job.batch.side);
    float* const out = job.batch.pixels.get() + i * 3 * side * side;
    std::uint32_t sample = record.sample;
    for (std::size_t tries = 0;; ++tries) {
      try {
        if (record.form == Form::wanted && options_.least_side > 0) keep_whole(decoder, record);
        decoder.decode(record.bytes, look_at(job.batch, sample), out);
        break;
      } catch (const Corrupt& why) {
        const std::string named = fmt::format("{}: {}", source_->name(sample), why.what());
        if (options_.on_corrupt == OnCorrupt::stop) throw Corrupt(named);
        if (tries == std::min(kReplacements, source_->records()))
          throw Corrupt(fmt::format("{}, and so are the {} samples after it", named, tries));
        refused.push_back({sample, why.what()});
      }
      sample = static_cast<std::uint32_t>((sample + std::size_t{1}) % source_->records());
      record.form = Form::encoded;
      record.bytes.resize(source_->bytes(sample));
      source_->read(sample, record.bytes);
    }
    job.batch.labels[i] = source_->label(sample);
    record.bytes = {};
  }

  /// The record becomes its decoded form, which the reader takes too.
  void keep_whole(Decoder& decoder, Record& record) const {
    std::vector<std::byte> whole = decoder.whole(record.bytes, options_.least_side);
    if (whole.empty()) return;
    record.bytes = whole;
    reader_->keep(record.sample, std::move(whole));
  }

  [[nodiscard]] PictureTransform look_at(const PictureBatch& batch, std::uint32_t sample) const {
    return {.side = batch.side,
            .augment = options_.augment,
            .seed = options_.seed,
            .epoch = batch.at.epoch,
            .sample = sample};
  }

  const std::function<std::unique_ptr<Decoder>()> make_decoder_;
  const std::shared_ptr<const Source> source_;
  const std::unique_ptr<Reader> reader_;  ///< read by the reading thread
  const PipelineOptions options_;
  const base::OwnProcess process_;
  base::Mutex mutex_;
  base::Condition changed_;
  std::deque<std::shared_ptr<Job>> jobs_ SYNCOPATE_GUARDED_BY(mutex_);
  std::set<std::uint32_t> named_ SYNCOPATE_GUARDED_BY(mutex_);  ///< refused samples that were reported
  bool finished_ SYNCOPATE_GUARDED_BY(mutex_) = false;          ///< no step follows those in jobs_
  bool ends_ SYNCOPATE_GUARDED_BY(mutex_) = false;  ///< the threads wait until it is set: they end with *this
  std::vector<std::jthread> threads_;               ///< the last member: joined before what they use is destroyed
};

Pipeline::Pipeline(const Dataset& set, std::shared_ptr<const Source> source, std::unique_ptr<Reader> reader,
                   const PipelineOptions& options)
    : work_(std::make_unique<Work>(set, std::move(source), std::move(reader), options)) {}
Pipeline::~Pipeline() {
  if (work_->process().is_inherited()) static_cast<void>(work_.release());  // it would wait for its parent's threads
}
void Pipeline::start(const Progress& from, Plan plan) { work_->start(from, std::move(plan)); }
PictureBatch Pipeline::next() { return work_->next(); }

}  // namespace syncopate::input
