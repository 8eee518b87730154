// The coder of codecs whose ranks all select the same elements: values without indices, in an additive round.
#pragma once

#include <functional>
#include <memory>

#include "compress/codec.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

/// Draws ascending indices below `source.values.count` from what every rank knows: the gradient's key and the step.
using Draw = std::function<void(const Tensor& source, const Moment& moment, std::vector<std::uint32_t>& into)>;

/// One additive round of the drawn elements, tensor after tensor. The average is the all-reduce's on these elements,
/// and zero elsewhere. If an element of a tensor is not finite, drawn or not, all its drawn ones are sent as NaN, so
/// that no rank overlooks it.
[[nodiscard]] std::unique_ptr<Coder> sharing_coder(Draw draw, Feedback feedback);

/// The values of these selections, one per tensor with equal indices on all ranks, as an additive round. `wire` has 4
/// bytes for each of them.
[[nodiscard]] Round packed_round(std::span<const Selection> selections, base::Bytes wire);
/// The round's answer into the tensors' values: zero where nothing was selected.
void unpack(std::span<const Selection> selections, base::ConstBytes wire, std::span<const Tensor> tensors);

}  // namespace syncopate::compress::sparse
