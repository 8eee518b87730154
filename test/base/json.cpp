// JSON: errors in a file are reported with their place.
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "syncopate/error.hpp"

namespace syncopate::base {
namespace {

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const Misuse& error) {
    return error.what();
  }
  return "taken";
}

TEST(Json, AmountsAreFiniteAndNotNegative) {
  const auto amount = [](const nlohmann::json& value) {
    return refusal([&] { std::ignore = JsonPlace(value, "f.json.alpha_s").amount(); });
  };
  EXPECT_EQ(amount(0), "taken");
  EXPECT_EQ(amount(2.5), "taken");
  EXPECT_EQ(amount(-1e-9), "f.json.alpha_s: is -1e-09; allowed: 0 or more");
  EXPECT_NE(amount(std::numeric_limits<double>::infinity()), "taken");
  EXPECT_EQ(amount("1"), "f.json.alpha_s: a number is expected here, not \"1\"");
}

TEST(Json, CountsAreWholeAndLargeEnough) {
  const auto count = [](const nlohmann::json& value) {
    return refusal([&] { std::ignore = JsonPlace(value, "f.json.ranks").count(1); });
  };
  EXPECT_EQ(count(1), "taken");
  EXPECT_EQ(count(4.0), "taken");
  EXPECT_EQ(count(2.5), "f.json.ranks: is 2.5; allowed: whole numbers of at least 1");
  EXPECT_NE(count(0), "taken");
  EXPECT_NE(count(1e16), "taken");
}

TEST(Json, ASyntaxErrorIsToldWithItsLine) {
  EXPECT_EQ(refusal([] { std::ignore = json_of("{\n\"a\": 1,\n]", "f.json"); }), "f.json: invalid JSON at line 3");
  EXPECT_EQ(refusal([] { std::ignore = json_of("", "f.json"); }), "f.json: invalid JSON at line 1");
}

TEST(Json, WhatIsMissingIsToldWithItsPlace) {
  const nlohmann::json value{{"layers", {{{"name", "conv1"}}}}};
  const JsonPlace layers = JsonPlace(value, "f.json").at("layers");
  EXPECT_EQ(refusal([&] { std::ignore = layers.at(std::size_t{0}).at("elements"); }),
            "f.json.layers[0]: \"elements\" is missing");
  EXPECT_EQ(refusal([&] { std::ignore = layers.at(std::size_t{1}); }),
            "f.json.layers: has 1 entries; allowed: at least 2");
  EXPECT_NE(refusal([&] { std::ignore = layers.at("name"); }), "taken");
}

}  // namespace
}  // namespace syncopate::base
