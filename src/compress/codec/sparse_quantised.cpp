// Top-k with quantised values: sends exactly the k largest elements, each as a sign and a level of a common scale.
// Selection as in topk. The residual keeps the rounding errors and the elements that were not selected.
//
//   v = g + r;  S = the ceil(d n) largest |v|;  q = max |v[S]| / (2^(b-1) - 1);  send (S, u = q round(v[S] / q))
//   r'[S] = v[S] - u, r' = v elsewhere
//   size: at d = 0.01 about 8.1 + b bits per selected element, and 4 bytes; N - 1 such packets reach every rank
#include "compress/parameters.hpp"
#include "compress/sparse/coder.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kParameters[] = {{"density", 0, 1}, {"bits", 1, 8, true}};

struct Coding {
  double density;
  sparse::ValueCoding values;
};

bool takes(DType dtype) { return dtype == DType::f32; }

Coding coding_of(const Settings& settings) {
  const std::vector<double> parameters = parameters_of(settings, kParameters);
  return {parameters[0], {.bits = static_cast<unsigned>(parameters[1])}};
}

void check(const Settings& settings) { static_cast<void>(coding_of(settings)); }

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  const auto [own, values] = coding_of(settings);
  const double density = sparse::most_density(settings, own);
  return sparse::gathering_bytes(tensors, values, [density](std::size_t n) { return sparse::selected_of(density, n); });
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  const auto [density, values] = coding_of(settings);
  return sparse::gathering_rounds(tensors, values,
                                  [own = density](std::size_t n) { return sparse::selected_of(own, n); });
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  const auto [own, values] = coding_of(settings);
  const auto select = [settings, density = own](const Compensated& tensor, const Tensor& /*source*/,
                                                const Moment& moment, sparse::Selection& into) {
    const double now = sparse::density_at(settings, density, moment.step);
    sparse::select_largest(tensor, sparse::selected_of(now, tensor.size()), into);
  };
  return sparse::gathering_coder({.select = select, .values = values, .feedback = settings.feedback});
}

}  // namespace

extern constinit const Codec sparse_quantised{
    .name = "sparse_quantised",
    .summary = "Exactly the largest elements, with values of 2 to 8 bits: `sparse_quantised:DENSITY,BITS`",
    .source = "topk's selection with values as in Alistarh et al., NIPS 2017 (QSGD), rounded to nearest",
    .combines = {.gather = true},
    .parameter = "0.01,4",
    .feedback = FeedbackUse::maskable,
    .has_density = true,
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
    .check = check,
};

}  // namespace syncopate::compress::codec
