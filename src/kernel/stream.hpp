// Copying into memory that is not read again soon, past the caches.
#pragma once

#include <cstddef>

namespace syncopate::kernel {

/// into = from. Lines of `into` are written without being read first, which saves a third of what a copy moves, and
/// take the place of nothing in the caches; for vectors longer than these. `from` should lie in a cache. The memories
/// do not overlap; addresses need no alignment beyond their type's. Other threads see the elements after they have
/// synchronised with this one, as of any store.
void stream(float* into, const float* from, std::size_t count);

}  // namespace syncopate::kernel
