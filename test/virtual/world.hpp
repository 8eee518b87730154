// World: virtual time, future events, chance, and the digest of all events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace syncopate::virtual_world {

using namespace std::chrono_literals;
using base::Duration, base::Time, base::kNever;

/// Room for a deferred call, so that an event costs no allocation.
class Slot final {
 public:
  template <class What>
  void set(What what) {
    static_assert(sizeof(What) <= kBytes && alignof(What) <= alignof(std::max_align_t));
    ::new (static_cast<void*>(bytes_)) What(std::move(what));
    end_ = [](void* bytes, bool happens) {
      What& held = *static_cast<What*>(bytes);
      if (happens) held();
      held.~What();
    };
  }
  void end(bool happens) { end_(bytes_, happens); }

 private:
  static constexpr std::size_t kBytes = 112;
  alignas(std::max_align_t) std::byte bytes_[kBytes];
  void (*end_)(void* bytes, bool happens) = nullptr;
};

/// One thread. Law: all events follow from the seed alone.
class World final {
 public:
  explicit World(std::uint64_t seed) : chance_(seed) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  [[nodiscard]] Time now() const noexcept { return now_; }
  /// Events of the same time happen in the order in which they were requested.
  template <class What>
  void at(Time when, What what) {
    slots_[push(when)].set(std::move(what));
  }
  template <class What>
  void in(Duration later, What what) {
    at(now_ + later, std::move(what));
  }
  /// Runs the next event; false: there is none, or none before `end`.
  bool go_on(Time end);

  /// A number from `low` to `high`, both included. (The standard's distributions differ between libraries.)
  [[nodiscard]] std::uint64_t draw(std::uint64_t low, std::uint64_t high) { return low + chance_() % (high - low + 1); }
  [[nodiscard]] Duration draw(Duration low, Duration high) {
    return Duration(draw(static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count())));
  }
  [[nodiscard]] bool happens(unsigned percent) { return draw(1, 100) <= percent; }

  /// Notes for the digest: `who` did `what`, of size `how_much`.
  void note(std::string_view what, std::uint64_t who, std::uint64_t how_much = 0);
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  bool prints = false;  ///< every note

 private:
  struct Event {
    Time when;
    std::uint64_t order;
    std::size_t slot;
    friend bool operator<(const Event& a, const Event& b) noexcept {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  [[nodiscard]] std::size_t push(Time when);
  Time now_{1s};
  std::uint64_t order_ = 0, digest_ = 0xcbf29ce484222325, events_ = 0;
  std::mt19937_64 chance_;
  std::vector<Event> heap_;
  std::deque<Slot> slots_;
  std::vector<std::size_t> free_;
};

}  // namespace syncopate::virtual_world
