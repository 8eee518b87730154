// Environment variables: a value outside the documented ones is refused, with the variable's name and what it allows.
#include "syncopate/tooling/environment.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ranges>

#include "base/env.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::base {
namespace {

using Kind = AllowedValues::Kind;

std::string refusal(std::string_view name, const std::string& value) {
  std::map<std::string, std::string, std::less<>> values{{std::string(name), value}};
  return test::thrown<Misuse>([&] { Environment(std::move(values)); });
}

TEST(EnvironmentVariables, WithAnotherValueThanTheDocumentedOnesAreRefusedByName) {
  for (const EnvironmentVariable& variable : environment_variables()) {
    if (variable.allowed.kind == Kind::any) continue;
    const std::string low = std::to_string(variable.allowed.low);
    const std::string expected =
        variable.allowed.kind == Kind::listed ? "allowed: " + std::string(variable.values) : "whole number from " + low;
    for (const std::string value : {"rdma", "-1", "1.5", "2 ", " 1", "99999999999999999999"}) {
      const std::string said = refusal(variable.name, value);
      EXPECT_TRUE(said.starts_with(std::string(variable.name) + "=" + value)) << variable.name << ": " << said;
      EXPECT_NE(said.find(expected), std::string::npos) << said;
    }
    EXPECT_EQ(refusal(variable.name, ""), "no error") << "an empty variable is not set";
  }
}

TEST(EnvironmentVariables, AcceptEveryDocumentedValue) {
  for (const EnvironmentVariable& variable : environment_variables()) {
    const auto& [kind, low, high] = variable.allowed;
    if (kind == Kind::listed) {
      for (const auto part : std::views::split(variable.values, std::string_view(", ")))
        EXPECT_EQ(refusal(variable.name, std::string(part.begin(), part.end())), "no error");
    }
    if (kind != Kind::whole) continue;
    EXPECT_EQ(refusal(variable.name, std::to_string(low)), "no error");
    EXPECT_EQ(refusal(variable.name, std::to_string(high)), "no error");
    EXPECT_NE(refusal(variable.name, std::to_string(low - 1)), "no error");
    if (variable.name == "SYNCOPATE_SEED" || variable.name == "SYNCOPATE_RANK") continue;  // documented in words
    const auto to = variable.values.find(" to ");
    const std::string documented =
        to == std::string::npos ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high);
    EXPECT_EQ(variable.values, documented) << variable.name;
    EXPECT_TRUE(to == std::string::npos || refusal(variable.name, std::to_string(high + 1)) != "no error");
  }
}

TEST(EnvironmentVariables, OfOthersAreNotJudged) { EXPECT_EQ(refusal("RANK", "x"), "no error"); }

}  // namespace
}  // namespace syncopate::base
