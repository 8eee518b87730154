// Top-k: sends exactly the k elements of the greatest magnitude; the residual keeps the others.
// Aji and Heafield, EMNLP 2017; selection by a sampled threshold and counted magnitudes (sparse/selection.hpp).
//
//   v = g + r;  S = the ceil(d n) largest |v|;  send (S, v[S]);  r'[S] = 0, r' = v elsewhere
//   size: at d = 0.01 about 8.1 + 32 bits per selected element; N - 1 such packets reach every rank
#include "compress/parameters.hpp"
#include "compress/sparse/coder.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kDensity{"density", 0, 1};

bool takes(DType dtype) { return dtype == DType::f32; }

double density_of(const Settings& settings) { return parameters_of(settings, {&kDensity, 1})[0]; }

void check(const Settings& settings) { static_cast<void>(density_of(settings)); }

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  const double density = sparse::most_density(settings, density_of(settings));
  return sparse::gathering_bytes(tensors, {}, [&](std::size_t n) { return sparse::selected_of(density, n); });
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  const double density = density_of(settings);
  return sparse::gathering_rounds(tensors, {}, [&](std::size_t n) { return sparse::selected_of(density, n); });
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  const auto select = [settings, density = density_of(settings)](const Compensated& tensor, const Tensor& /*source*/,
                                                                 const Moment& moment, sparse::Selection& into) {
    const double now = sparse::density_at(settings, density, moment.step);
    sparse::select_largest(tensor, sparse::selected_of(now, tensor.size()), into);
  };
  return sparse::gathering_coder({.select = select, .feedback = settings.feedback});
}

}  // namespace

extern constinit const Codec topk{
    .name = "topk",
    .summary = "Exactly the largest elements, with coded indices: `topk:DENSITY`",
    .source = "Aji and Heafield, EMNLP 2017",
    .combines = {.gather = true},
    .parameter = "0.01",
    .feedback = FeedbackUse::maskable,
    .has_density = true,
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
    .check = check,
};

}  // namespace syncopate::compress::codec
