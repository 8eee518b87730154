// World: virtual time, the events to come, chance, and the digest of all that happened.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace syncopate::virtual_world {

using namespace std::chrono_literals;
using base::Duration, base::Time, base::kNever;

/// One thread. Law: what happens follows from the seed alone.
class World final {
 public:
  explicit World(std::uint64_t seed) : chance_(seed) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Time now() const noexcept { return now_; }
  /// Events of the same time happen in the order in which they were asked for.
  void at(Time when, std::function<void()> what);
  void in(Duration later, std::function<void()> what) { at(now_ + later, std::move(what)); }
  /// Happens what is next; false: nothing will, or not before `end`.
  bool go_on(Time end);

  /// From `low` to `high`, both included. (The standard's distributions differ between libraries.)
  [[nodiscard]] std::uint64_t draw(std::uint64_t low, std::uint64_t high) { return low + chance_() % (high - low + 1); }
  [[nodiscard]] Duration draw(Duration low, Duration high) {
    return Duration(draw(static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count())));
  }
  [[nodiscard]] bool happens(unsigned percent) { return draw(1, 100) <= percent; }

  /// Something to remember: `who` did `what`, of size `how_much`.
  void note(std::string_view what, std::uint64_t who, std::uint64_t how_much = 0);
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  bool prints = false;  ///< every note

 private:
  struct Event {
    Time when;
    std::uint64_t order;
    std::function<void()> what;
    friend bool operator<(const Event& a, const Event& b) noexcept {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  Time now_{1s};
  std::uint64_t order_ = 0, digest_ = 0xcbf29ce484222325, events_ = 0;
  std::mt19937_64 chance_;
  std::vector<Event> heap_;
};

}  // namespace syncopate::virtual_world
