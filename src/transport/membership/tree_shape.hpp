// Tree shape: who shares an edge of the control tree with whom, also after some ranks have left.
#pragma once

#include <set>

namespace syncopate::transport::membership {

[[nodiscard]] constexpr int parent_of(int rank) noexcept { return (rank - 1) / 2; }

/// The ranks that share an edge with `rank`, of `size` ranks of which those in `departed` have left. Law: a rank's
/// parent is the nearest of its ancestors (parent_of) that is still there; where none is, the lowest rank that is
/// there. So the ranks that are there form one tree, and an edge changes only when one of its ends leaves.
[[nodiscard]] std::set<int> neighbours_of(int rank, int size, const std::set<int>& departed = {});

}  // namespace syncopate::transport::membership
