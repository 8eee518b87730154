// Tree shape: the neighbours of each rank in the control tree, also after some ranks have left.
#pragma once

#include <set>

namespace syncopate::transport::membership {

[[nodiscard]] constexpr int parent_of(int rank) noexcept { return (rank - 1) / 2; }

/// The neighbours of `rank` among `size` ranks of which those in `departed` have left. Law: a rank's parent is its
/// nearest remaining ancestor (parent_of); without one, the lowest remaining rank. The remaining ranks therefore form
/// one tree, and an edge changes only when one of its ends leaves.
[[nodiscard]] std::set<int> neighbours_of(int rank, int size, const std::set<int>& departed = {});

}  // namespace syncopate::transport::membership
