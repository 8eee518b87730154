// PowerSGD: sends a matrix as two factors, computed by a power iteration that continues from step to step.
// Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient compression for distributed optimization",
// NeurIPS 2019, algorithms 1 and 2. Gradients whose factors would not be smaller are sent uncoded.
//
//   V_n = G_n + R_n on rank n;  P = orthonormal(average of V_n Q);  Q_n = V_n^T P;  Q' = average of Q_n
//   average = P Q'^T;           R_n' = V_n - P Q_n^T, with this rank's own Q_n: the ranks' P Q_n^T sum to N averages
//   size: per matrix 4 RANK (rows + columns) bytes in two additive rounds; 2 (N - 1)/N of them pass a port
//
// Workers of a parameter server share no rounds: each sends factors of its own V_n, with P = orthonormal(V_n Q).
#include "compress/factored/coder.hpp"
#include "kernel/factor.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kRank[] = {{"rank", 0, kernel::kMostRank, true}};

std::size_t rank_of(const Settings& settings) { return static_cast<std::size_t>(settings.numbers[0]); }

std::size_t kept_bytes(const Settings& settings, const Tensor& tensor, int /*ranks*/) {
  return factored::q_bytes(rank_of(settings), tensor);
}

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  return factored::factored_bytes(rank_of(settings), tensors);
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  double rows = 0, columns = 0;
  for (const Tensor& tensor : tensors) {
    rows += static_cast<double>(tensor.rows);
    columns += static_cast<double>(tensor.columns);
  }
  const double bytes = static_cast<double>(rank_of(settings)) * sizeof(float);
  return {{Combine::additive, bytes * rows}, {Combine::additive, bytes * columns}};
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  return factored::factored_coder(rank_of(settings), settings.feedback);
}

std::unique_ptr<Coder> coder_alone(const Settings& settings) {
  return factored::own_factors_coder(rank_of(settings), settings.feedback);
}

bool codes(const Settings& settings, const Tensor& whole) {
  return whole.values.count > rank_of(settings) * (whole.rows + whole.columns);
}

}  // namespace

extern constinit const Codec low_rank{
    .name = "low_rank",
    .summary = "A matrix as two narrow factors, by a power iteration across steps: `low_rank:RANK`",
    .source = "Vogels et al., NeurIPS 2019 (PowerSGD)",
    .combines = {.additive = true},
    .parameter = "4",
    .parameters = kRank,
    .decodes_alone = false,
    .one_round = false,
    .feedback = FeedbackUse::sound,
    .takes = takes_f32,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .coder_alone = coder_alone,
    .rounds = rounds,
    .kept_bytes = kept_bytes,
    .codes = codes,
};

}  // namespace syncopate::compress::codec
