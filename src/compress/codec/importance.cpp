// Importance-weighted pruning: sends the elements that change their weights most; a few ranks select for all ranks.
// Cheng and Xu, "Bandwidth reduction using importance weighted pruning on ring allreduce", equation 4 and Algorithm 1,
// errata corrected.
//
//   v = g + r;  I = |v| / (|w| + eps);  R = var(I) / mean(I) of the gradient, 0 if mean(I) = 0
//   thr = alpha + beta R if R > C, else alpha - beta R, but at least alpha / 10;  beta = 0: one threshold for all
//   on MASKS ranks, drawn for each gradient and step: mask = I > thr, or with probability chance * min(1, I / thr)
//   M = union of all masks and, in turn, 1/FLUSH of the gradient;  average v[M];  r'[M] = 0, r' = v elsewhere
//   size: gathered masks of MASKS ranks, about 7.3 bits per element of a mask of density 0.017; 32 bits per element
//   of M in an all-reduce
//
// `chance` is 0 by default: it enlarges M by up to 30 %, and the importance of an unsent element grows anyway, because
// v grows. FLUSH bounds the delay: every element is sent at least once in FLUSH steps. eps keeps I finite where w is 0,
// such as for biases at initialisation.
#include <cmath>

#include "base/random.hpp"
#include "compress/sparse/masking.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr base::shelf::Parameter kParameters[] = {
    {"alpha", 1e-9, 1e9},          {"masks", 0, 1024, true},      {"flush", 0, 1e9, true, true},
    {"chance", 0, 1, false, true}, {"beta", 0, 1e9, false, true}, {"C", 0, 1e9, false, true},
    {"eps", 1e-12, 1e9},
};

constexpr double kUsualDensity = 0.015;  ///< of a mask, if alpha suits the model and its learning rate

struct Rule {
  double alpha, chance, beta, turn, eps;
};

Rule rule_of(const std::vector<double>& parameters) {
  return {parameters[0], parameters[3], parameters[4], parameters[5], parameters[6]};
}

std::size_t wire_bytes(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return sparse::masking_bytes(tensors);
}

/// A gradient's elements and their weights.
struct Layer {
  const float* v;
  const float* w;
  std::size_t size;
  [[nodiscard]] double importance(std::size_t i, double eps) const { return std::fabs(v[i]) / (std::fabs(w[i]) + eps); }
};

double threshold_of(const Rule& rule, const Layer& layer) {
  if (rule.beta == 0) return rule.alpha;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < layer.size; ++i) {
    const double importance = layer.importance(i, rule.eps);
    sum += importance;
    squares += importance * importance;
  }
  const double mean = sum / static_cast<double>(layer.size);
  const double ratio = (squares / static_cast<double>(layer.size) - mean * mean) / mean;
  if (!std::isfinite(ratio)) return rule.alpha;  // all elements are zero, or one is not finite
  return std::max(rule.alpha + (ratio > rule.turn ? rule.beta : -rule.beta) * ratio, rule.alpha / 10);
}

void propose(const Rule& rule, const Layer& layer, const base::CounterRandom& random, sparse::Selection& into) {
  const double threshold = threshold_of(rule, layer);
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
  const auto propose_now = [rule = rule_of(parameters)](const Compensated& tensor, const Tensor& source,
                                                        const StepInfo& info, sparse::Selection& into) {
    const Layer layer{tensor.elements(), static_cast<const float*>(source.weights.data), tensor.size()};
    propose(rule, layer, {source.key, info.step, static_cast<std::uint64_t>(info.rank)}, into);
  };
  return {.propose = propose_now,
          .proposers = static_cast<int>(parameters[1]),
          .flush_in = static_cast<std::uint64_t>(parameters[2]),
          .feedback = settings.feedback};
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  return sparse::masking_rounds(coding_of(settings), kUsualDensity, tensors);
}

std::unique_ptr<Coder> coder(const Settings& settings) { return sparse::masking_coder(coding_of(settings)); }

}  // namespace

extern constinit const Codec importance{
    .name = "importance",
    .summary =
        "Elements that change their weights most, selected by a few ranks for all: "
        "`importance:ALPHA,MASKS,FLUSH,CHANCE,BETA,C,EPS`",
    .source = "Cheng & Xu, importance-weighted pruning, equation 4 and Algorithm 1, errata corrected",
    .combines = {.additive = true, .gather = true},
    .parameter = "3,1,300,0,0,0,0.001",
    .parameters = kParameters,
    .decodes_alone = false,
    .one_round = false,
    .feedback = FeedbackUse::maskable,
    .wants_weights = true,
    .takes = takes_f32,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
};

}  // namespace syncopate::compress::codec
