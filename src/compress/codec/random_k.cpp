// Random-k: every rank sends the same elements, drawn from the gradient's key and the step; no indices are sent.
// Stich, Cordonnier and Jaggi, "Sparsified SGD with memory", NeurIPS 2018 (rand-k), stratified.
//
//   k = ceil(d n) strata of equal size m; in step t, element (u + t) mod m of each stratum, with u redrawn per stratum
//   every m steps: uniform in every step, and each element is sent once in m steps
//   v = g + r;  send v[S];  r'[S] = 0, r' = v elsewhere
//   size: 32 bits per selected element in an all-reduce: 2 (N - 1)/N of them pass a port (gather: N - 1)
#include "compress/sparse/density.hpp"
#include "compress/sparse/sharing.hpp"

namespace syncopate::compress::codec {

namespace {

std::size_t bytes_at(double density, std::span<const Tensor> tensors) {
  std::size_t selected = 0;
  for (const Tensor& tensor : tensors) selected += sparse::selected_of(density, tensor.values.count);
  return selected * sizeof(float);
}

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  return bytes_at(sparse::most_density(settings), tensors);
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  return {{Combine::additive, static_cast<double>(bytes_at(sparse::density_of(settings), tensors))}};
}

/// The drawn indices depend only on the key, the step and the number of elements, not on the rank.
void draw(const Tensor& source, double density, std::uint64_t step, std::vector<std::uint32_t>& into) {
  const std::size_t strata = sparse::selected_of(density, source.values.count);
  into.clear();
  for (std::size_t stratum = 0; stratum < strata; ++stratum) {
    const Range range = even_part(source.values.count, strata, stratum);
    const base::CounterRandom random{source.key, step / range.size()};
    const std::uint64_t first = random.below(static_cast<std::uint32_t>(range.size()), stratum);
    into.push_back(static_cast<std::uint32_t>(range.begin + (first + step) % range.size()));
  }
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  const auto draw_now = [settings](const Tensor& source, const StepInfo& info, std::vector<std::uint32_t>& into) {
    draw(source, sparse::density_at(settings, info.step), info.step, into);
  };
  return sparse::sharing_coder(draw_now, settings.feedback);
}

}  // namespace

extern constinit const Codec random_k = sparse::density_codec({
    .name = "random_k",
    .summary = "The same random elements on every rank, without indices: `random_k:DENSITY`",
    .source = "Stich, Cordonnier & Jaggi, NeurIPS 2018, stratified",
    .combines = {.additive = true},
    .parameter = "0.05",
    .decodes_alone = false,
    .selects_alike = true,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
});

}  // namespace syncopate::compress::codec
