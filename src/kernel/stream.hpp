// Copying into memory that is not read again soon, past the caches.
#pragma once

#include <cstddef>

namespace syncopate::kernel {

/// into = from. Lines of `into` are written without being read first, which saves a third of a copy's traffic, and
/// evict nothing from the caches. For vectors larger than the caches. `from` should be in a cache. The ranges do not
/// overlap; addresses need only their type's alignment. As with any store, other threads see the elements after they
/// have synchronised with this one.
void stream(float* into, const float* from, std::size_t count);

}  // namespace syncopate::kernel
