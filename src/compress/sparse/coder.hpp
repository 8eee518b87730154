// Gathering coder: sends selected elements; every rank's packets are gathered and summed.
#pragma once

#include <functional>
#include <memory>

#include "compress/codec.hpp"
#include "compress/sparse/packet.hpp"

namespace syncopate::compress::sparse {

/// Forms all elements of the tensor and selects the elements to send.
using Select =
    std::function<void(const Compensated& tensor, const Tensor& source, const StepInfo& info, Selection& into)>;

struct SparseCoding {
  Select select;
  ValueCoding values{};
  Feedback feedback{};
};

/// One gather round with a packet per tensor. The average is the sum of fl(v / N) in rank order, and zero for elements
/// that no rank sent. An exchange may decline the round if the gathered packets are larger than the dense gradient;
/// then the same selections are sent as an additive round.
[[nodiscard]] std::unique_ptr<Coder> gathering_coder(SparseCoding coding);
/// For Codec::wire_bytes, if at most `selected(elements)` elements of a tensor are sent.
[[nodiscard]] std::size_t gathering_bytes(std::span<const Tensor> tensors, const ValueCoding& values,
                                          const std::function<std::size_t(std::size_t elements)>& selected);

/// For Codec::rounds, if about `selected(elements)` elements of a tensor are sent.
[[nodiscard]] std::vector<RoundBytes> gathering_rounds(
    std::span<const Tensor> tensors, const ValueCoding& values,
    const std::function<std::size_t(std::size_t elements)>& selected);

/// Number of elements that a density selects: at least one, unless `elements` is 0.
[[nodiscard]] std::size_t selected_of(double density, std::size_t elements) noexcept;

}  // namespace syncopate::compress::sparse
