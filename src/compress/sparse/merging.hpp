// The coder of codecs whose sparse packets are merged pairwise: the sum of two packets, cut to its largest elements.
#pragma once

#include <functional>
#include <memory>

#include "compress/sparse/coder.hpp"

namespace syncopate::compress::sparse {

/// How many elements of a tensor a packet has at most, in a step; alike on all ranks.
using MostSelected = std::function<std::size_t(std::size_t elements, std::uint64_t step)>;

/// One mergeable round with a packet per tensor, of f32 values. Two packets become one with the `most` largest of
/// their sums; of equal ones those of lower index. What a merge drops is added to the residual of the rank that merges,
/// so that with d_1, d_2, ... the values that this rank drops in its merges, in their order, and s what it selects,
///
///   r' = fl(... fl(fl(fl(g + r) - s) + d_1) ... + d_m)
///
/// and nothing is lost. The average is fl(m / N) of the last sum m; zero where it has nothing.
/// Shi et al., "A distributed synchronous SGD algorithm with global top-k sparsification", ICDCS 2019, algorithm 3;
/// there a value returns to the ranks that selected it, for which each needs to see the final indices.
[[nodiscard]] std::unique_ptr<Coder> merging_coder(SparseCoding coding, MostSelected most);
/// For Codec::wire_bytes.
[[nodiscard]] std::size_t merging_bytes(std::span<const Tensor> tensors,
                                        const std::function<std::size_t(std::size_t elements)>& selected);

/// The sum of two selections into `sum`: every index of either, ascending.
void add_selections(const Arrival& a, const Arrival& b, Selection& sum);

}  // namespace syncopate::compress::sparse
