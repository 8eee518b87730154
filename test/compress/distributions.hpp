// Distributions of elements for tests of selections: realistic and pathological ones.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "base/random.hpp"

namespace syncopate::compress::test {

using Distribution = std::function<float(const base::CounterRandom&, std::uint64_t)>;

inline const std::map<std::string, Distribution> kDistributions{
    {"normal",
     [](const auto& random, std::uint64_t i) {
       const double radius = std::sqrt(-2 * std::log(1 - random.uniform(2 * i)));
       return static_cast<float>(radius * std::cos(6.283185307179586 * random.uniform(2 * i + 1)));
     }},
    {"heavy_tail",
     [](const auto& random, std::uint64_t i) {
       return static_cast<float>(std::pow(1 - random.uniform(i), -2.0) * (i % 2 == 0 ? 1 : -1));
     }},
    {"all_equal", [](const auto& /*random*/, std::uint64_t /*i*/) { return -3.5F; }},
    {"all_zero", [](const auto& /*random*/, std::uint64_t i) { return i % 2 == 0 ? 0.0F : -0.0F; }},
    {"few_not_zero", [](const auto& random, std::uint64_t i) { return random.below(50000, i) == 0 ? 1.0F : 0.0F; }},
    {"ascending", [](const auto& /*random*/, std::uint64_t i) { return static_cast<float>(i); }},
    {"denormal",
     [](const auto& random, std::uint64_t i) {
       return static_cast<float>(random.below(100, i)) * std::numeric_limits<float>::denorm_min();
     }},
    {"one_block_is_large", [](const auto& /*random*/, std::uint64_t i) { return i / 4096 == 30 ? 2.0F : 1e-20F; }},
    {"nan_and_infinity",
     [](const auto& random, std::uint64_t i) {
       const std::uint32_t kind = random.below(1000, i);
       if (kind == 0) return std::numeric_limits<float>::quiet_NaN();
       if (kind == 1) return -std::numeric_limits<float>::infinity();
       return static_cast<float>(random.uniform(i));
     }},
};

}  // namespace syncopate::compress::test
