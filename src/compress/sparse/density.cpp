// Density codecs: densities by step, and the sizes of their packets.
#include "compress/sparse/density.hpp"

#include <algorithm>
#include <cmath>

#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

namespace {

ValueCoding values_of(const Settings& settings) {
  if (settings.numbers.size() < 2) return {};
  return {.bits = static_cast<unsigned>(settings.numbers[1])};
}

}  // namespace

double density_at(const Warmup& warmup, double density, std::uint64_t step) {
  if (step >= warmup.steps || warmup.density <= density) return density;
  const double passed = static_cast<double>(step) / static_cast<double>(warmup.steps);
  return warmup.density * std::pow(density / warmup.density, passed);
}

double density_at(const Settings& settings, std::uint64_t step) {
  return density_at(settings.warmup, density_of(settings), step);
}

double most_density(const Settings& settings) { return std::max(density_of(settings), density_at(settings, 0)); }

void select_largest_share(const Compensated& tensor, double density, const base::CounterRandom& /*random*/,
                          Selection& into) {
  select_largest(tensor, selected_of(density, tensor.size()), into);
}

SparseCoding density_coding(const Settings& settings, SelectShare select) {
  const auto select_now = [settings, select](const Compensated& tensor, const Tensor& source, const StepInfo& info,
                                             Selection& into) {
    const base::CounterRandom random{source.key, info.step, static_cast<std::uint64_t>(info.rank)};
    select(tensor, density_at(settings, info.step), random, into);
  };
  return {.select = select_now, .values = values_of(settings), .feedback = settings.feedback};
}

std::size_t density_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  return gathering_bytes(tensors, values_of(settings), [density = most_density(settings)](std::size_t elements) {
    return selected_of(density, elements);
  });
}

std::vector<RoundBytes> density_rounds(const Settings& settings, std::span<const Tensor> tensors) {
  return gathering_rounds(tensors, values_of(settings), [density = density_of(settings)](std::size_t elements) {
    return selected_of(density, elements);
  });
}

}  // namespace syncopate::compress::sparse
