// Sharing coder: all ranks select the same elements and send values without indices in an additive round.
#pragma once

#include <functional>
#include <memory>

#include "compress/codec.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

/// Draws ascending indices below `source.values.count` from `source.key` and the step, which all ranks know. Uses
/// nothing else of `source`.
using Draw = std::function<void(const Tensor& source, const StepInfo& info, std::vector<std::uint32_t>& into)>;

/// One additive round of the drawn elements of all tensors. The result is the all-reduce average of these elements, and
/// zero elsewhere. If any element of a tensor is not finite, all its drawn elements are sent as NaN, so that every rank
/// detects it.
[[nodiscard]] std::unique_ptr<Coder> sharing_coder(Draw draw, Feedback feedback);

/// An additive round of the values of these selections, one per tensor, with equal indices on all ranks. `wire` has 4
/// bytes for each value.
[[nodiscard]] Round packed_round(std::span<const Selection> selections, base::Bytes wire);
/// Writes the round's answer to the tensors' values, and zeros where nothing was selected.
void unpack(std::span<const Selection> selections, base::ConstBytes wire, std::span<const Tensor> tensors);

}  // namespace syncopate::compress::sparse
