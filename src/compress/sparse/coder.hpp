// The coder of codecs that send selected elements: every rank's packets are gathered and added up.
#pragma once

#include <functional>
#include <memory>

#include "compress/codec.hpp"
#include "compress/sparse/packet.hpp"

namespace syncopate::compress::sparse {

/// Forms all elements of the tensor and selects those that travel.
using Select =
    std::function<void(const Compensated& tensor, const Tensor& source, const Moment& moment, Selection& into)>;

struct SparseCoding {
  Select select;
  ValueCoding values{};
  Feedback feedback{};
};

/// One gather round with a packet per tensor. The average is the sum over the ranks, in their order, of fl(v / N); zero
/// where nobody sent anything. An exchange may decline the round where packets that add up to more than the dense
/// gradient would be gathered; then the same selections travel as an additive round.
[[nodiscard]] std::unique_ptr<Coder> gathering_coder(SparseCoding coding);
/// For Codec::wire_bytes, where at most `selected(elements)` elements of a tensor travel.
[[nodiscard]] std::size_t gathering_bytes(std::span<const Tensor> tensors, const ValueCoding& values,
                                          const std::function<std::size_t(std::size_t elements)>& selected);

/// For Codec::rounds, where about so many travel.
[[nodiscard]] std::vector<RoundBytes> gathering_rounds(
    std::span<const Tensor> tensors, const ValueCoding& values,
    const std::function<std::size_t(std::size_t elements)>& selected);

/// Elements that a density selects: at least one, where there are any.
[[nodiscard]] std::size_t selected_of(double density, std::size_t elements) noexcept;
/// The density in a step: from the settings' warm-up to the codec's own, in equal ratios.
[[nodiscard]] double density_at(const Settings& settings, double density, std::uint64_t step) noexcept;
/// The highest density of all steps.
[[nodiscard]] double most_density(const Settings& settings, double density) noexcept;

}  // namespace syncopate::compress::sparse
