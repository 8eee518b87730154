// Merging coder: merges sparse packets pairwise; a merge keeps the largest elements of the sum.
#pragma once

#include <functional>
#include <memory>

#include "compress/sparse/coder.hpp"

namespace syncopate::compress::sparse {

/// The maximum number of elements of a tensor in a packet, by step; equal on all ranks.
using MostSelected = std::function<std::size_t(std::size_t elements, std::uint64_t step)>;

/// One mergeable round with a packet of f32 values per tensor. A merge keeps the `most` largest sums of two packets;
/// ties go to the lower index. Dropped values are added to the residual of the rank that merges. With s the values that
/// this rank selects and d_1, d_2, ... the values that it drops in its merges, in order,
///
///   r' = fl(... fl(fl(fl(g + r) - s) + d_1) ... + d_m)
///
/// so nothing is lost. The average is fl(m / N) of the final sum m, and zero for elements that it lacks.
/// Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification", ICDCS 2019, algorithm 3. In
/// the paper, a dropped value returns to the ranks that selected it, which requires the final indices.
[[nodiscard]] std::unique_ptr<Coder> merging_coder(SparseCoding coding, MostSelected most);
/// For Codec::wire_bytes.
[[nodiscard]] std::size_t merging_bytes(std::span<const Tensor> tensors,
                                        const std::function<std::size_t(std::size_t elements)>& selected);

/// Writes the sum of two selections to `sum`: all indices of both, ascending.
void add_selections(const Arrival& a, const Arrival& b, Selection& sum);

}  // namespace syncopate::compress::sparse
