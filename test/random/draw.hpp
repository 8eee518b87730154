// Draw: choices that a seed decides, the same on every machine; and which seeds a test goes through.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace syncopate::test {

/// A hash with uniform bits (splitmix64).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

class Draw final {
 public:
  explicit Draw(std::uint64_t seed) noexcept : state_(mixed(seed)) {}
  [[nodiscard]] std::uint64_t word() noexcept { return mixed(state_++); }
  [[nodiscard]] std::size_t below(std::size_t limit) noexcept { return word() % limit; }
  [[nodiscard]] bool chance(std::size_t percent) noexcept { return below(100) < percent; }
  template <class Range>
  [[nodiscard]] auto pick(const Range& values) noexcept {
    return std::data(values)[below(std::size(values))];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::uint64_t state_;
};

/// A whole number from the environment.
[[nodiscard]] inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// `count` consecutive seeds from 1. SYNCOPATE_SEED sets the first one, and then there is one; SYNCOPATE_COUNT sets the
/// number.
[[nodiscard]] inline std::vector<std::uint64_t> seeds(std::size_t count) {
  const std::uint64_t first = number_from("SYNCOPATE_SEED", 1);
  count = number_from("SYNCOPATE_COUNT", std::getenv("SYNCOPATE_SEED") == nullptr ? count : 1);
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(first + i);
  return all;
}

/// The command that repeats the test with this seed.
[[nodiscard]] inline std::string replay(const char* program, const char* test, std::uint64_t seed) {
  return fmt::format("again: SYNCOPATE_SEED={} build/release/bin/{} --gtest_filter='{}'", seed, program, test);
}

}  // namespace syncopate::test
