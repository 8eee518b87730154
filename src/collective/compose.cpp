// Composing plans: guests of a hypercube, halving and gathering among its corners.
#include "collective/compose.hpp"

namespace syncopate::collective {

bool fold_guests(Plan& plan, const pattern::Hypercube& cube, std::uint32_t rank) {
  if (cube.is_guest(rank)) {
    plan.steps.push_back({Act::send, cube.host_of(rank), 0, plan.chunks, false});
    return true;
  }
  if (cube.has_guest(rank)) plan.steps.push_back({Act::receive_reduce, cube.guest_of(rank), 0, plan.chunks, false});
  return false;
}

bool unfold_guests(Plan& plan, const pattern::Hypercube& cube, std::uint32_t rank) {
  if (cube.is_guest(rank)) {
    plan.steps.push_back({Act::receive, cube.host_of(rank), 0, plan.chunks, false});
    return true;
  }
  if (cube.has_guest(rank)) plan.steps.push_back({Act::send, cube.guest_of(rank), 0, plan.chunks, false});
  return false;
}

void add_recursive_halving(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner) {
  pattern::Run run{0, cube.corners()};
  for (std::uint32_t mask = cube.corners() / 2; mask > 0; mask /= 2) {
    const std::uint32_t partner = corner ^ mask;
    const pattern::Run keep = pattern::kept_half(run, corner, mask), give = pattern::kept_half(run, partner, mask);
    plan.steps.push_back({Act::send, partner, give.first, give.count, false});
    plan.steps.push_back({Act::receive_reduce, partner, keep.first, keep.count, mask == 1});
    run = keep;
  }
}

void add_recursive_gathering(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner) {
  for (std::uint32_t mask = 1; mask < cube.corners(); mask *= 2) {
    const std::uint32_t partner = corner ^ mask;
    plan.steps.push_back({Act::send, partner, corner & ~(mask - 1), mask, false});
    plan.steps.push_back({Act::receive, partner, partner & ~(mask - 1), mask, false});
  }
}

}  // namespace syncopate::collective
