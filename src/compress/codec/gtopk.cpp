// Global top-k: merges every rank's largest elements pairwise along a tree; only the k largest sums reach the ranks.
// Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification", ICDCS 2019.
//
//   v = g + r;  S = the ceil(d n) largest |v|;  log2 N times: the ceil(d n) largest of the sum of two packets
//   r'[S] = 0, r' = v elsewhere; what a rank drops in a merge is added to its own r'
//   size: at d = 0.01 about 8.1 + 32 bits per selected element; log2 N such packets pass a port one after the other,
//         and each rank receives one result (topk: N - 1 packets)
#include "compress/sparse/density.hpp"
#include "compress/sparse/merging.hpp"

namespace syncopate::compress::codec {

namespace {

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  const double density = sparse::most_density(settings);
  return sparse::merging_bytes(tensors, [&](std::size_t n) { return sparse::selected_of(density, n); });
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  const double density = sparse::density_of(settings);
  double bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += sparse::expected_packet_bytes({}, sparse::selected_of(density, tensor.values.count), tensor.values.count);
  return {{Combine::mergeable, bytes}};
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  const auto most = [settings](std::size_t elements, std::uint64_t step) {
    return sparse::selected_of(sparse::density_at(settings, step), elements);
  };
  return sparse::merging_coder(sparse::density_coding(settings, sparse::select_largest_share), most);
}

}  // namespace

extern constinit const Codec gtopk = sparse::density_codec({
    .name = "gtopk",
    .summary = "The largest elements of the sum, merged pairwise along a tree: `gtopk:DENSITY`",
    .source = "Shi et al., ICDCS 2019 (gTop-k)",
    .combines = {.mergeable = true},
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
});

}  // namespace syncopate::compress::codec
