// CPU cost of codecs: encoding, adding and decoding in dense bytes per second, compared with one read of memory.
#include "compress/codec.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "kernel/quantize.hpp"

namespace syncopate {
namespace {

using compress::Tensor;

constexpr std::size_t kRows = 4096, kColumns = 4096;  ///< 64 MiB: beyond the caches of a core

/// CPU seconds of this thread, without those of other threads.
double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// About normal, of mean 0 and variance 1.
std::vector<float> gradient_like(std::size_t count) {
  const base::CounterRandom random{1};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random.bits(i);
    double sum = 0;
    for (unsigned part = 0; part < 4; ++part) sum += static_cast<double>((bits >> (16 * part)) & 0xffff) * 0x1p-16;
    values[i] = static_cast<float>((sum - 2) * std::sqrt(3.0));
  }
  return values;
}

/// A codec alone: a group of one rank, which answers itself.
class Alone final {
 public:
  explicit Alone(const compress::Settings& settings)
      : settings_(settings), coder_(compress::coder_of(settings, true)), gradient_(gradient_like(kRows * kColumns)) {
    tensor_ = {.values = Buffer(std::span(gradient_)), .rows = kRows, .columns = kColumns, .key = 7};
    kept_.resize(compress::state_bytes(settings_, tensor_, true, 1));
    next_.resize(kept_.size());
    tensor_.kept = kept_;
    tensor_.next = next_;
    wire_.resize(compress::wire_bytes_of(settings_, {&tensor_, 1}, true));
  }

  /// Seconds of `begin` and of every `next`.
  std::vector<double> step() {
    std::vector<double> seconds;
    double from = cpu_s();
    const auto lap = [&] {
      seconds.push_back(cpu_s() - from);
      from = cpu_s();
    };
    auto round = std::optional(coder_->begin({&tensor_, 1}, {.step = steps_++}, wire_));
    lap();
    while (round) {
      answer_.assign(round->payload.bytes().begin(), round->payload.bytes().end());
      const base::ConstBytes packet = answer_;
      from = cpu_s();
      const bool is_additive = round->combine == compress::Combine::additive;
      round = coder_->next(is_additive ? compress::Answer() : compress::Answer{.packets = std::span(&packet, 1)});
      lap();
    }
    return seconds;
  }

 private:
  const compress::Settings settings_;
  const std::unique_ptr<compress::Coder> coder_;
  std::vector<float> gradient_;
  std::vector<std::byte> kept_, next_, wire_, answer_;
  Tensor tensor_;
  std::uint64_t steps_ = 0;
};

void phase(benchmark::State& state, const std::string& codec, bool has_feedback) {
  compress::Settings settings = compress::settings_of(codec);
  if (has_feedback) settings.feedback.kind = compress::Feedback::Kind::residual;
  Alone alone(settings);
  const auto index = static_cast<std::size_t>(state.range(0));
  static_cast<void>(alone.step());
  for (auto _ : state) state.SetIterationTime(alone.step().at(index));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kRows * kColumns * sizeof(float)));
}

void read(benchmark::State& state) {
  const std::vector<float> gradient = gradient_like(kRows * kColumns);
  for (auto _ : state) {
    const double from = cpu_s();
    benchmark::DoNotOptimize(kernel::peak(gradient.data(), gradient.size()));
    state.SetIterationTime(cpu_s() - from);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kRows * kColumns * sizeof(float)));
}

/// Filled before main by Google Benchmark's own convention.
const bool registered = [] {
  benchmark::RegisterBenchmark("read", read)->UseManualTime();
  for (const compress::Codec* codec : compress::codecs())
    for (const bool has_feedback : {false, true}) {
      const bool is_sound = codec->feedback == compress::FeedbackUse::sound;
      if (codec->feedback == compress::FeedbackUse::pointless || codec->wants_weights || (has_feedback && !is_sound))
        continue;
      const std::string name = std::string(codec->name) + (has_feedback ? "/residual" : "/plain");
      auto* const made = benchmark::RegisterBenchmark(name.c_str(), phase, std::string(codec->name), has_feedback);
      made->ArgName("round")->UseManualTime();
      for (std::int64_t index = 0; index <= (codec->one_round ? 1 : 2); ++index) made->Arg(index);
    }
  return true;
}();

}  // namespace
}  // namespace syncopate
