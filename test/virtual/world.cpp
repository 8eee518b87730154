// World: a heap of events, and a hash over what was noted.
#include "virtual/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::virtual_world {

World::~World() {
  for (const Event& event : heap_) slots_[event.slot].end(false);
}

/// The slot of a future event.
std::size_t World::push(Time when) {
  if (free_.empty()) {
    free_.push_back(slots_.size());
    slots_.emplace_back();
  }
  const std::size_t slot = free_.back();
  free_.pop_back();
  heap_.push_back({std::max(when, now_), order_++, slot});
  std::push_heap(heap_.begin(), heap_.end());
  return slot;
}

bool World::go_on(Time end) {
  if (heap_.empty() || heap_.front().when >= end) return false;
  std::pop_heap(heap_.begin(), heap_.end());
  const Event next = heap_.back();
  heap_.pop_back();
  now_ = next.when;
  ++events_;
  slots_[next.slot].end(true);
  free_.push_back(next.slot);
  return true;
}

void World::note(std::string_view what, std::uint64_t who, std::uint64_t how_much) {
  const auto add = [&](std::uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3 ^ (digest_ >> 29); };
  for (const char letter : what) add(static_cast<unsigned char>(letter));
  add(who);
  add(how_much);
  add(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  if (prints) fmt::print("{:12.6f} {} {} {}\n", base::seconds(now_.time_since_epoch()), who, what, how_much);
}

}  // namespace syncopate::virtual_world
