// Importance-weighted pruning: sends the elements that change their weights most; a few ranks select for all ranks.
// Cheng and Xu, "Bandwidth reduction using importance weighted pruning on ring allreduce", equation 4 and Algorithm 1,
// errata corrected.
//
//   v = g + r;  I = |v| / (|w| + eps);  R = var(I) / mean(I) of the gradient, 0 if mean(I) = 0
//   thr = alpha + beta R if R > C, else alpha - beta R, but at least alpha / 10;  beta = 0: one threshold for all
//   alpha = auto:D: each gradient's alpha follows the density D: alpha' = alpha (1 + (d / D - 1) / 10), where d is the
//   share of its elements in the union of all masks, and one step at most halves or doubles it
//   on MASKS ranks, drawn for each gradient and step: mask = I > thr, or with probability chance * min(1, I / thr)
//   M = union of all masks and, in turn, 1/FLUSH of the gradient;  average v[M];  r'[M] = 0, r' = v elsewhere
//   size: gathered masks of MASKS ranks, about 7.3 bits per element of a mask of density 0.017; 32 bits per element
//   of M in an all-reduce
//
// Workers of a parameter server share no masks: each sends the elements of its own, M = mask, with their values.
//
// `chance` is 0 by default: it enlarges M by up to 30 %, and the importance of an unsent element grows anyway, because
// v grows. FLUSH bounds the delay: every element is sent at least once in FLUSH steps. It is 0, never, by default: with
// FLUSH 300 trainings end no better and send 15 % more (docs/papers/importance-weighted-pruning.md). eps keeps I finite
// where w is 0, such as for biases at initialisation.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/random.hpp"
#include "compress/sparse/density.hpp"
#include "compress/sparse/masking.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kParameters[] = {
    {.name = "alpha", .above = 1e-9, .most = 1e9, .or_auto = true},
    {"masks", 0, 1024, true},
    {"flush", 0, 1e9, true, true},
    {"chance", 0, 1, false, true},
    {"beta", 0, 1e9, false, true},
    {"C", 0, 1e9, false, true},
    {"eps", 1e-12, 1e9},
};

constexpr double kUsualDensity = 0.015;  ///< of the union of the masks, if alpha suits the model and its learning rate
constexpr double kGain = 0.1;            ///< share of the deviation from the target that one step corrects
constexpr float kMostChange = 2;         ///< of the threshold in one step
constexpr std::uint64_t kReportIn =
    16;  ///< steps between reports of the importances, which cost passes over all elements

struct Rule {
  std::optional<double> alpha;  ///< empty: found for `target`
  double target;                ///< density, if alpha is to be found, and after a warm-up
  Warmup warmup;
  double chance, beta, turn, eps;
};

Rule rule_of(const Settings& settings) {
  const std::vector<double>& parameters = settings.numbers;
  const bool is_auto = parameters[0] < 0;
  return {.alpha = is_auto ? std::nullopt : std::optional(parameters[0]),
          .target = is_auto ? -parameters[0] : kUsualDensity,
          .warmup = settings.warmup,
          .chance = parameters[3],
          .beta = parameters[4],
          .turn = parameters[5],
          .eps = parameters[6]};
}

/// The density that alpha is to give in a step; empty: alpha is fixed. A warm-up to a fixed alpha falls to the usual
/// density.
std::optional<double> target_at(const Rule& rule, std::uint64_t step) {
  if (rule.alpha && step >= rule.warmup.steps) return std::nullopt;
  return sparse::density_at(rule.warmup, rule.target, step);
}

std::size_t wire_bytes(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return sparse::masking_bytes(tensors);
}

/// A gradient's elements and their weights.
struct WeighedGradient {
  const float* v;
  const float* w;
  std::size_t size;
  [[nodiscard]] double importance(std::size_t i, double eps) const { return std::fabs(v[i]) / (std::fabs(w[i]) + eps); }
};

/// The threshold that this share of the elements exceeds, at least one; 0 if they are all zero.
float quantile(const WeighedGradient& layer, double density, double eps) {
  std::vector<float> importance(layer.size);
  for (std::size_t i = 0; i < layer.size; ++i) importance[i] = static_cast<float>(layer.importance(i, eps));
  const std::size_t selected = sparse::selected_of(density, layer.size);
  if (selected == 0) return 0;
  const auto last = importance.begin() + static_cast<std::ptrdiff_t>(selected - 1);
  std::ranges::nth_element(importance, last, std::greater());
  return std::isfinite(*last) ? std::nextafter(*last, 0.0F) : 0;
}

/// Alpha in this step, from that which the last step left.
float alpha_of(const Rule& rule, const WeighedGradient& layer, float before, std::uint64_t step) {
  const std::optional<double> target = target_at(rule, step);
  if (!target) return static_cast<float>(*rule.alpha);
  return before > 0 ? before : quantile(layer, *target, rule.eps);
}

float alpha_after(const Rule& rule, float alpha, double density, const StepInfo& info) {
  const std::optional<double> target = target_at(rule, info.step);
  if (!target) return static_cast<float>(*rule.alpha);
  const auto factor = static_cast<float>(1 + kGain * (density / *target - 1));
  const float next = alpha * std::clamp(factor, 1 / kMostChange, kMostChange);
  return rule.alpha ? std::min(next, static_cast<float>(*rule.alpha)) : next;
}

/// Variance over mean of the importance; not finite if all elements are zero or one is not finite.
double spread_of(const WeighedGradient& layer, double eps) {
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < layer.size; ++i) {
    const double importance = layer.importance(i, eps);
    sum += importance;
    squares += importance * importance;
  }
  const double mean = sum / static_cast<double>(layer.size);
  return (squares / static_cast<double>(layer.size) - mean * mean) / mean;
}

/// The elements by importance; zero is below the first octave, what is not finite above the last.
Octaves octaves_of(const WeighedGradient& layer, double eps) {
  Octaves octaves{};
  const int last = static_cast<int>(octaves.size()) - 1;
  for (std::size_t i = 0; i < layer.size; ++i) {
    const double importance = layer.importance(i, eps);
    const int octave = std::isfinite(importance) ? std::clamp(std::ilogb(importance) - kFirstOctave, 0, last) : last;
    ++octaves[static_cast<std::size_t>(octave)];
  }
  return octaves;
}

double threshold_of(const Rule& rule, double alpha, double spread) {
  if (rule.beta == 0 || !std::isfinite(spread)) return alpha;
  return std::max(alpha + (spread > rule.turn ? rule.beta : -rule.beta) * spread, alpha / 10);
}

void propose(const Rule& rule, const WeighedGradient& layer, double threshold, const base::CounterRandom& random,
             sparse::Selection& into) {
  sparse::each_chunk(layer.size, [&](Range chunk) {
    into.add_where(layer.v, chunk, [&](std::size_t i) {
      const double limit = threshold * (std::fabs(layer.w[i]) + rule.eps);
      if (!(std::fabs(layer.v[i]) <= limit)) return true;  // true for NaN too
      return rule.chance > 0 && random.uniform(i) * limit < rule.chance * std::fabs(layer.v[i]);
    });
  });
}

sparse::MaskCoding coding_of(const Settings& settings) {
  const std::vector<double>& parameters = settings.numbers;
  const Rule rule = rule_of(settings);
  const auto propose_now = [rule](const Compensated& tensor, const Tensor& source, const StepInfo& info, float before,
                                  sparse::Selection& into) -> sparse::Proposal {
    const WeighedGradient layer{tensor.elements(), static_cast<const float*>(source.weights.data), tensor.size()};
    const float alpha = alpha_of(rule, layer, before, info.step);
    const bool is_reported = source.report != nullptr && info.step % kReportIn == 0;
    const double spread = rule.beta > 0 || is_reported ? spread_of(layer, rule.eps) : 0;
    if (is_reported) source.report->importances = octaves_of(layer, rule.eps);
    propose(rule, layer, threshold_of(rule, alpha, spread),
            {source.key, info.step, static_cast<std::uint64_t>(info.rank)}, into);
    return {alpha, spread};
  };
  const auto next_alpha = [rule](float alpha, double density, const StepInfo& info) {
    return alpha_after(rule, alpha, density, info);
  };
  return {.propose = propose_now,
          .next_threshold = next_alpha,
          .proposers = static_cast<int>(parameters[1]),
          .flush_in = static_cast<std::uint64_t>(parameters[2]),
          .feedback = settings.feedback};
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  const Rule rule = rule_of(settings);
  return sparse::masking_rounds(coding_of(settings), {.density = rule.target, .is_measured = rule.alpha.has_value()},
                                tensors);
}

std::unique_ptr<Coder> coder(const Settings& settings) { return sparse::masking_coder(coding_of(settings)); }

std::unique_ptr<Coder> coder_alone(const Settings& settings) { return sparse::own_mask_coder(coding_of(settings)); }

}  // namespace

extern constinit const Codec importance{
    .name = "importance",
    .summary =
        "Elements that change their weights most, selected by a few ranks for all: "
        "`importance:ALPHA,MASKS,FLUSH,CHANCE,BETA,C,EPS` or `importance:auto:DENSITY,MASKS,...`",
    .source = "Cheng & Xu, importance-weighted pruning, equation 4 and Algorithm 1, errata corrected",
    .combines = {.additive = true, .gather = true},
    .parameter = "3,1,0,0,0,0,0.001",
    .parameters = kParameters,
    .decodes_alone = false,
    .one_round = false,
    .feedback = FeedbackUse::maskable,
    .wants_weights = true,
    .warms_up = true,
    .has_open_density = [](const Settings& settings) { return settings.numbers[0] > 0; },
    .takes = takes_f32,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .coder_alone = coder_alone,
    .rounds = rounds,
    .kept_bytes = sparse::masking_state_bytes,
};

}  // namespace syncopate::compress::codec
