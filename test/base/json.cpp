// JSON: errors in a file are reported with their place.
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::base {
namespace {

TEST(Json, AmountsAreFiniteAndNotNegative) {
  const auto amount = [](const nlohmann::json& value) {
    return test::thrown<Misuse>([&] { std::ignore = JsonPlace(value, "f.json.alpha_s").amount(); });
  };
  EXPECT_EQ(amount(0), "no error");
  EXPECT_EQ(amount(2.5), "no error");
  EXPECT_EQ(amount(-1e-9), "f.json.alpha_s: is -1e-09; allowed: 0 or more");
  EXPECT_NE(amount(std::numeric_limits<double>::infinity()), "no error");
  EXPECT_EQ(amount("1"), "f.json.alpha_s: a number is expected here, not \"1\"");
}

TEST(Json, CountsAreWholeAndLargeEnough) {
  const auto count = [](const nlohmann::json& value) {
    return test::thrown<Misuse>([&] { std::ignore = JsonPlace(value, "f.json.ranks").count(1); });
  };
  EXPECT_EQ(count(1), "no error");
  EXPECT_EQ(count(4.0), "no error");
  EXPECT_EQ(count(2.5), "f.json.ranks: is 2.5; allowed: whole numbers of at least 1");
  EXPECT_NE(count(0), "no error");
  EXPECT_NE(count(1e16), "no error");
}

TEST(Json, ASyntaxErrorIsToldWithItsLine) {
  EXPECT_EQ(test::thrown<Misuse>([] { std::ignore = json_of("{\n\"a\": 1,\n]", "f.json"); }),
            "f.json: invalid JSON at line 3");
  EXPECT_EQ(test::thrown<Misuse>([] { std::ignore = json_of("", "f.json"); }), "f.json: invalid JSON at line 1");
}

TEST(Json, WhatIsMissingIsToldWithItsPlace) {
  const nlohmann::json value{{"layers", {{{"name", "conv1"}}}}};
  const JsonPlace layers = JsonPlace(value, "f.json").at("layers");
  EXPECT_EQ(test::thrown<Misuse>([&] { std::ignore = layers.at(std::size_t{0}).at("elements"); }),
            "f.json.layers[0]: \"elements\" is missing");
  EXPECT_EQ(test::thrown<Misuse>([&] { std::ignore = layers.at(std::size_t{1}); }),
            "f.json.layers: has 1 entries; allowed: at least 2");
  EXPECT_NE(test::thrown<Misuse>([&] { std::ignore = layers.at("name"); }), "no error");
}

}  // namespace
}  // namespace syncopate::base
