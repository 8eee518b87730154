// Density codecs: what the codecs share that send a given share of a gradient's elements.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "compress/sparse/coder.hpp"

namespace syncopate::compress::sparse {

/// The first parameter of these codecs. The second, if there is one, is the number of bits of a value.
inline constexpr Parameter kDensity[] = {{"density", 0, 1}};

/// The codec's own density, after the warm-up.
[[nodiscard]] inline double density_of(const Settings& settings) { return settings.numbers[0]; }
/// The density in a step: falls geometrically from the warm-up's density to `density`.
[[nodiscard]] double density_at(const Warmup& warmup, double density, std::uint64_t step);
/// The density in a step that ends with the codec's own.
[[nodiscard]] double density_at(const Settings& settings, std::uint64_t step);
/// The highest density of all steps.
[[nodiscard]] double most_density(const Settings& settings);

/// Forms all elements of the tensor and selects about this share of them. `random` is keyed by gradient, step and rank.
using SelectShare = void (*)(const Compensated& tensor, double density, const base::CounterRandom& random,
                             Selection& into);
/// The share's largest elements, exactly.
void select_largest_share(const Compensated& tensor, double density, const base::CounterRandom& random,
                          Selection& into);

[[nodiscard]] SparseCoding density_coding(const Settings& settings, SelectShare select);
/// For Codec::coder, ::wire_bytes and ::rounds of codecs with one gather round.
template <SelectShare select>
[[nodiscard]] std::unique_ptr<Coder> density_coder(const Settings& settings) {
  return gathering_coder(density_coding(settings, select));
}
[[nodiscard]] std::size_t density_bytes(const Settings& settings, std::span<const Tensor> tensors);
[[nodiscard]] std::vector<RoundBytes> density_rounds(const Settings& settings, std::span<const Tensor> tensors);

/// Completes an entry of the shelf. A field of `own` that is set stays.
[[nodiscard]] constexpr Codec density_codec(Codec own) {
  if (own.parameter.empty()) own.parameter = "0.01";
  if (own.parameters.empty()) own.parameters = kDensity;
  own.feedback = FeedbackUse::maskable;
  own.has_density = true;
  own.warms_up = true;
  own.takes = takes_f32;
  if (own.wire_bytes == nullptr) own.wire_bytes = density_bytes;
  if (own.rounds == nullptr) own.rounds = density_rounds;
  return own;
}

}  // namespace syncopate::compress::sparse
