// Codec loopback: one rank answers its own rounds; only the coder's calls are timed.
#include "syncopate/tooling/codec_loopback.hpp"

#include <cstdlib>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/require.hpp"
#include "compress/coding.hpp"
#include "compress/feedback_choice.hpp"
#include "kernel/sum.hpp"

namespace syncopate {

namespace {

compress::Settings settings_for(const LoopbackOptions& options) {
  compress::Settings settings = compress::settings_of(options.codec);
  base::require(options.feedback != FeedbackKind::momentum,
                "codec loopback: feedback momentum is not supported; allowed: auto, none, residual");
  settings.feedback.kind = compress::feedback_with(*settings.codec, options.feedback);
  return settings;
}

/// The largest divisor that is not above the square root.
std::size_t most_square(std::size_t elements) {
  std::size_t rows = 1;
  for (std::size_t divisor = 2; divisor * divisor <= elements; ++divisor)
    if (elements % divisor == 0) rows = divisor;
  return rows;
}

template <class F>
double seconds_of(F&& work) {
  const base::SteadyClock clock;
  const base::Time begin = clock.now();
  work();
  return base::seconds(clock.now() - begin);
}

}  // namespace

struct CodecLoopback::State {
  explicit State(const LoopbackOptions& options);
  [[nodiscard]] compress::Tensor tensor(std::span<float> gradient);
  [[nodiscard]] compress::Answer answer(const compress::Round& round);

  compress::Settings settings;
  std::size_t elements, rows;
  std::unique_ptr<compress::Coder> coder;
  std::vector<std::byte> wire, answered;
  base::ConstBytes arrived;            ///< the answer to a round that is not additive
  std::vector<std::byte> copies[2]{};  ///< between steps
  std::vector<float> weights{};
  std::uint64_t steps = 0;
};

CodecLoopback::State::State(const LoopbackOptions& options)
    : settings(settings_for(options)), elements(options.elements), rows(most_square(elements)) {
  base::require(elements > 0, "codec loopback: the gradient has 0 elements; allowed: 1 or more");
  compress::require_taken(settings, "loopback", DType::f32);
  if (settings.codec->wants_weights) {
    const base::CounterRandom random{elements};
    for (std::size_t i = 0; i < elements; ++i) weights.push_back(static_cast<float>(random.uniform(i) - 0.5));
  }
  std::vector<float> none;
  const compress::Tensor whole = tensor(none);
  base::require(compress::is_coded(settings, whole), "codec {} does not code a gradient of {} x {} elements",
                settings.codec->name, whole.rows, whole.columns);
  for (auto& copy : copies) copy.resize(compress::state_bytes(settings, whole, true, 1));
  wire.resize(compress::wire_bytes_of(settings, {&whole, 1}, true));
  coder = compress::coder_of(settings, true);
}

compress::Tensor CodecLoopback::State::tensor(std::span<float> gradient) {
  const std::size_t now = steps % 2;
  return {.values = Buffer(gradient.data(), elements, DType::f32),
          .weights = Buffer(weights.data(), weights.size(), DType::f32),
          .kept = copies[now],
          .next = copies[1 - now],
          .rows = rows,
          .columns = elements / rows,
          .key = elements};
}

compress::Answer CodecLoopback::State::answer(const compress::Round& round) {
  if (round.combine == compress::Combine::additive) return {};
  const auto bytes = round.payload.bytes();
  answered.assign(bytes.begin(), bytes.end());
  arrived = answered;
  return {.packets = std::span(&arrived, 1)};
}

CodecLoopback::CodecLoopback(const LoopbackOptions& options) : state_(std::make_unique<State>(options)) {}
CodecLoopback::~CodecLoopback() = default;
CodecLoopback::CodecLoopback(CodecLoopback&&) noexcept = default;

LoopbackStep CodecLoopback::step(std::span<float> gradient) {
  State& state = *state_;
  base::require(gradient.size() == state.elements,
                "codec loopback: the gradient has {} elements; it was created for {}", gradient.size(), state.elements);
  const compress::Tensor tensor = state.tensor(gradient);
  LoopbackStep step;
  std::optional<compress::Round> round;
  double spent = seconds_of([&] { round = state.coder->begin({&tensor, 1}, {.step = state.steps}, state.wire); });
  while (round) {
    step.encode_s += spent;
    step.wire_bytes += round->payload.bytes().size();
    step.index_bytes += round->index_bytes;
    const compress::Answer answer = state.answer(*round);
    spent = seconds_of([&] { round = state.coder->next(answer); });
  }
  step.decode_s = spent;
  ++state.steps;
  return step;
}

std::optional<double> CodecLoopback::density() const {
  const compress::Settings& settings = state_->settings;
  if (!settings.codec->has_density) return std::nullopt;
  return settings.numbers.front();
}

bool CodecLoopback::selects() const { return state_->settings.codec->feedback == compress::FeedbackUse::maskable; }

std::uint32_t read_once(std::span<const float> elements) { return kernel::bit_sum(elements); }

}  // namespace syncopate
