// Tree shape: the neighbours of each rank in the control tree, also after some ranks have left.
#include "transport/membership/tree_shape.hpp"

namespace syncopate::transport::membership {

namespace {

/// The children of a rank; a departed child is replaced by its children.
void add_children(int rank, int size, const std::set<int>& departed, std::set<int>& children) {
  for (const int child : {2 * rank + 1, 2 * rank + 2}) {
    if (child >= size) continue;
    if (departed.contains(child))
      add_children(child, size, departed, children);
    else
      children.insert(child);
  }
}

int root_of(const std::set<int>& departed) {
  int root = 0;
  while (departed.contains(root)) ++root;
  return root;
}

}  // namespace

std::set<int> neighbours_of(int rank, int size, const std::set<int>& departed) {
  std::set<int> neighbours;
  add_children(rank, size, departed, neighbours);
  const int root = root_of(departed);
  if (rank == root) {  // also ranks without a remaining ancestor
    if (root > 0) add_children(0, size, departed, neighbours);
    neighbours.erase(rank);
    return neighbours;
  }
  int parent = rank;
  do {
    parent = parent > 0 ? parent_of(parent) : -1;
  } while (departed.contains(parent));
  neighbours.insert(parent >= 0 ? parent : root);
  return neighbours;
}

}  // namespace syncopate::transport::membership
