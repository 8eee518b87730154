// Scratch: the first free piece that is long enough, else a new one.
#include "collective/engine/scratch.hpp"

#include <algorithm>

#include "transport/transport.hpp"

namespace syncopate::collective::engine {

base::Bytes Scratch::take(std::size_t bytes) {
  const auto fits = std::ranges::find_if(free_, [&](base::Bytes free) { return free.size() >= bytes; });
  if (fits != free_.end()) {
    const base::Bytes found = *fits;
    *fits = free_.back();
    free_.pop_back();
    return found;
  }
  const std::size_t rounded = std::max(bytes, transport::kWireFrames.longest);
  owned_.push_back(std::make_unique_for_overwrite<std::byte[]>(rounded));
  return {owned_.back().get(), rounded};
}

}  // namespace syncopate::collective::engine
