// Composing plans: pieces that several algorithms are made of.
#pragma once

#include "collective/pattern/hypercube.hpp"
#include "syncopate/plan.hpp"

namespace syncopate::collective {

/// A guest gives its vector of `chunks` chunks to its host before the exchange, and gets the result after it.
/// Both return true if `rank` is a guest, whose plan has nothing between.
bool fold_guests(Plan& plan, const pattern::Hypercube& cube, std::uint32_t rank);
bool unfold_guests(Plan& plan, const pattern::Hypercube& cube, std::uint32_t rank);

/// Recursive halving among the corners: corner c ends with chunk c complete. The plan has one chunk per corner.
void add_recursive_halving(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner);
/// Recursive doubling among the corners: corner c starts with chunk c and ends with all.
void add_recursive_gathering(Plan& plan, const pattern::Hypercube& cube, std::uint32_t corner);

}  // namespace syncopate::collective
