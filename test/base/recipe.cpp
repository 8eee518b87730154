// Recipes: their values, and errors with the place and the allowed values.
#include "syncopate/tooling/recipe.hpp"

#include <gtest/gtest.h>

#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

TEST(Recipe, PartsHaveWhatIsWrittenAndDefaultsElsewhere) {
  const Recipe recipe = parse_recipe(
      R"({"about": "x", "samples": 100, "options": {"optimizer": "lars", "trust": 0.0008, "augment": true}, "parts": [
          {"epochs": 2, "batch": 8},
          {"epochs": 3, "batch": 4, "resolution": 96, "learning_rate": [0.5, 0], "codec": "topk:0.01",
           "exchange": "hierarchical", "algorithm": "ring", "feedback": "momentum", "warmup_density": [0.25, 100],
           "samples_per_second": 10, "update_s": 0.5}]})",
      "r.json");
  EXPECT_EQ(recipe.samples, 100U);
  EXPECT_EQ(recipe.epochs(), 5U);
  const std::vector<std::pair<std::string, std::string>> options{
      {"augment", "true"}, {"optimizer", "lars"}, {"trust", "0.0008"}};
  EXPECT_EQ(recipe.options, options);
  const RecipePart *first = recipe.part_of(1), *second = recipe.part_of(2);
  EXPECT_EQ(first, &recipe.parts[0]);
  EXPECT_EQ(first->codec + first->exchange + first->algorithm, "noneallreduceauto");
  EXPECT_EQ(first->resolution, 0U);
  EXPECT_FALSE(first->learning_rate);
  EXPECT_EQ(second, recipe.part_of(4));
  EXPECT_EQ(second->learning_rate, std::pair(0.5, 0.0));
  EXPECT_EQ(second->codec + second->exchange + second->algorithm, "topk:0.01hierarchicalring");
  EXPECT_EQ(first->feedback, "");
  EXPECT_EQ(second->feedback, "momentum");
  EXPECT_FALSE(first->warmup_density);
  EXPECT_EQ(second->warmup_density, std::pair(0.25, std::uint64_t{100}));
  EXPECT_EQ(second->update_s, 0.5);
  EXPECT_EQ(recipe.part_of(5), nullptr);
}

TEST(Recipe, WhatIsWrongIsRefusedWithItsPlace) {
  const std::pair<std::string, std::string> wrong[] = {
      {R"({"parts": []})", "allowed: at least one part"},
      {R"({})", "parts"},
      {R"({"parts": [{"epochs": 1}]})", "batch"},
      {R"({"parts": [{"epochs": 0, "batch": 1}]})", "epochs"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "resolution": 8}]})", "resolution"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "resolution": 99999}]})", "99999; allowed: 16 to 4096"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "learning_rate": [1]}]})", "must be [first rate"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "learning_rate": [1, -1]}]})", "learning_rate"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "resolutoin": 96}]})", "resolutoin"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "codec": 5}]})", "codec"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "warmup_density": [2, 5]}]})", "a density of 2; allowed"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "warmup_density": [0.5]}]})", "must be [first density"},
      {R"({"parts": [{"epochs": 1, "batch": 1, "warmup_density": [0.5, 0]}]})", "warmup_density"},
      {R"({"options": {"trust": [1]}, "parts": [{"epochs": 1, "batch": 1}]})",
       "options.trust: a text, a number, true or false is expected here, not array"},
      {R"({"options": ["trust"], "parts": [{"epochs": 1, "batch": 1}]})", "options: an object is expected"},
      {"{", "r.json"},
  };
  for (const auto& [json, says] : wrong)
    test::expect_thrown<Misuse>([&] { return parse_recipe(json, "r.json"); }, {says});
}

}  // namespace
}  // namespace syncopate
