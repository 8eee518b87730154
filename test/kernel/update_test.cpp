// The loops of optimizers against plain ones in f32, bit for bit, on every instruction set.
#include "kernel/update.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "elements.hpp"

namespace syncopate::kernel {
namespace {

/// Weights, gradient and two states.
using Memory = std::array<std::vector<float>, 4>;
using Pointers = std::array<float*, 4>;

constexpr Moments kAdam{.beta1 = 0.9F,
                        .rest1 = 0.1F,
                        .beta2 = 0.99F,
                        .rest2 = 0.01F,
                        .mean_factor = 1.7F,
                        .root_factor = 3.1F,
                        .epsilon = 1e-6F};

/// A function of the kernel, and the same for one element, in its formula's order.
struct Law {
  const char* name;
  std::function<void(std::size_t, const Pointers&)> run;
  std::function<void(float&, float&, float&, float&)> element;
};

float adam_direction(float g, float& mean, float& square) {
  mean = kAdam.beta1 * mean + kAdam.rest1 * g;
  square = kAdam.beta2 * square + kAdam.rest2 * (g * g);
  return kAdam.mean_factor * mean / (kAdam.root_factor * std::sqrt(square) + kAdam.epsilon);
}

Law momentum(const char* name, MomentumForm form) {
  return {name,
          [form](std::size_t n, const Pointers& p) {
            descend_with_momentum({0.3F, 0.07F, 0.9F}, form, n, {p[0], p[1], p[2]});
          },
          [form](float& w, float& g, float& v, float&) {
            const float d = form.corrected ? 0.07F * w : g + 0.07F * w;
            v = 0.9F * v + d;
            float by = form.nesterov ? d + 0.9F * v : v;
            if (form.corrected) by = by + g;
            w -= 0.3F * by;
            g = 0;
          }};
}

std::vector<Law> laws() {
  return {{"descend",
           [](std::size_t n, const Pointers& p) {
             descend({0.3F, 0.07F}, n, p[0], p[1]);
           },
           [](float& w, float& g, float&, float&) {
             w -= 0.3F * (g + 0.07F * w);
             g = 0;
           }},
          momentum("momentum", {false, false}),
          momentum("nesterov", {true, false}),
          momentum("corrected", {false, true}),
          momentum("corrected nesterov", {true, true}),
          {"scaled momentum",
           [](std::size_t n, const Pointers& p) {
             descend_with_scaled_momentum({0.3F, 0.07F, 0.9F}, n, {p[0], p[1], p[2]});
           },
           [](float& w, float& g, float& v, float&) {
             v = 0.9F * v + 0.3F * (g + 0.07F * w);
             w -= v;
             g = 0;
           }},
          {"moments",
           [](std::size_t n, const Pointers& p) {
             descend_by_moments({0.3F, 0.07F}, kAdam, n, {p[0], p[1], p[2], p[3]});
           },
           [](float& w, float& g, float& mean, float& square) {
             w -= 0.3F * adam_direction(g + 0.07F * w, mean, square);
             g = 0;
           }},
          {"decoupled moments",
           [](std::size_t n, const Pointers& p) {
             descend_by_moments_decoupled({0.3F, 0.07F}, kAdam, n, {p[0], p[1], p[2], p[3]});
           },
           [](float& w, float& g, float& mean, float& square) {
             w -= 0.3F * (adam_direction(g, mean, square) + 0.07F * w);
             g = 0;
           }},
          {"squares",
           [](std::size_t n, const Pointers& p) {
             descend_by_squares({0.3F, 0.07F}, 1e-6F, n, {p[0], p[1], p[3]});
           },
           [](float& w, float& g, float&, float& square) {
             const float d = g + 0.07F * w;
             square = square + d * d;
             w -= 0.3F * (d / (std::sqrt(square) + 1e-6F));
             g = 0;
           }},
          {"direction",
           [](std::size_t n, const Pointers& p) {
             direction_of_moments(0.07F, kAdam, n, {p[0], p[1], p[2], p[3]});
           },
           [](float& w, float& g, float& mean, float& square) { g = adam_direction(g, mean, square) + 0.07F * w; }}};
}

Memory drawn(std::size_t count) {
  std::mt19937_64 random(count);
  std::normal_distribution<float> normal;
  Memory memory;
  for (std::size_t m = 0; m < memory.size(); ++m)
    for (std::size_t i = 0; i < count; ++i) memory[m].push_back(m == 3 ? std::abs(normal(random)) : normal(random));
  return memory;
}

/// Runs the law in guarded memory that starts `offset` bytes past a boundary, and compares with plain loops.
void expect_law(const Law& law, const Memory& start, std::size_t offset, const std::string& what) {
  const std::size_t count = start[0].size();
  std::vector<testing::Guarded> memory;
  Pointers pointers{};
  for (const std::vector<float>& values : start) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
    memory.emplace_back(std::vector(bytes, bytes + count * sizeof(float)), offset);
  }
  for (std::size_t m = 0; m < memory.size(); ++m) pointers[m] = reinterpret_cast<float*>(memory[m].data());
  law.run(count, pointers);
  Memory expected = start;
  for (std::size_t i = 0; i < count; ++i) law.element(expected[0][i], expected[1][i], expected[2][i], expected[3][i]);
  for (std::size_t m = 0; m < memory.size(); ++m) {
    EXPECT_TRUE(memory[m].guards_hold()) << what << " memory " << m;
    for (std::size_t i = 0; i < count; ++i) {
      const float value = testing::element<float>(memory[m].data(), i), wanted = expected[m][i];
      const std::uint32_t bits = std::isnan(wanted) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(wanted);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(value), bits) << what << " memory " << m << " element " << i;
    }
  }
}

TEST(UpdateKernel, IsItsFormulaBitForBitAtEveryLengthOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const Law& law : laws()) {
      for (std::size_t count = 0; count <= 70; ++count)
        expect_law(law, drawn(count), 4 * (count % 17), std::string(law.name) + " on " + target);
      expect_law(law, drawn(4099), 12, std::string(law.name) + " on " + target);
    }
  });
}

TEST(UpdateKernel, WhatIsNotFiniteFollowsIEEEAndEveryNaNIsTheOne) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float kStrange = std::bit_cast<float>(0xffc12345U);
  testing::on_every_target([&](const std::string& target) {
    for (const Law& law : laws()) {
      Memory memory = drawn(40);
      const float values[] = {kStrange, kInfinity, -kInfinity, 1e30F, -1e-40F, 0.0F};
      for (std::size_t i = 0; i < std::size(values); ++i) memory[1][i] = memory[1][39 - i] = values[i];
      // Memory that a law only reads keeps the bits of its NaN.
      if (std::string(law.name) != "direction") memory[0][20] = kStrange;
      memory[2][21] = kInfinity;
      memory[3][22] = kInfinity;
      expect_law(law, memory, 0, std::string(law.name) + " on " + target);
    }
  });
}

}  // namespace
}  // namespace syncopate::kernel
