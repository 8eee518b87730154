// Global top-k: merges every rank's largest elements pairwise along a tree; only the k largest sums reach the ranks.
// Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification", ICDCS 2019.
//
//   v = g + r;  S = the ceil(d n) largest |v|;  log2 N times: the ceil(d n) largest of the sum of two packets
//   r'[S] = 0, r' = v elsewhere; what a rank drops in a merge is added to its own r'
//   size: at d = 0.01 about 8.1 + 32 bits per selected element; log2 N such packets pass a port one after the other,
//         and each rank receives one result (topk: N - 1 packets)
#include "compress/parameters.hpp"
#include "compress/sparse/merging.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kDensity{"density", 0, 1};

bool takes(DType dtype) { return dtype == DType::f32; }

double density_of(const Settings& settings) { return parameters_of(settings, {&kDensity, 1})[0]; }

void check(const Settings& settings) { static_cast<void>(density_of(settings)); }

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  const double density = sparse::most_density(settings, density_of(settings));
  return sparse::merging_bytes(tensors, [&](std::size_t n) { return sparse::selected_of(density, n); });
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  const double density = density_of(settings);
  double bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += sparse::expected_packet_bytes({}, sparse::selected_of(density, tensor.values.count), tensor.values.count);
  return {{Combine::mergeable, bytes}};
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  const auto most = [settings, density = density_of(settings)](std::size_t elements, std::uint64_t step) {
    return sparse::selected_of(sparse::density_at(settings, density, step), elements);
  };
  const auto select = [most](const Compensated& tensor, const Tensor& /*source*/, const Moment& moment,
                             sparse::Selection& into) {
    sparse::select_largest(tensor, most(tensor.size(), moment.step), into);
  };
  return sparse::merging_coder({.select = select, .feedback = settings.feedback}, most);
}

}  // namespace

extern constinit const Codec gtopk{
    .name = "gtopk",
    .summary = "The largest elements of the sum, merged pairwise along a tree: `gtopk:DENSITY`",
    .source = "Shi et al., ICDCS 2019 (gTop-k)",
    .combines = {.mergeable = true},
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
