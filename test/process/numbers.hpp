// The options of a command that take a number, a size or a rate, as its help lists them, and what each must refuse.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "process/run_program.hpp"

namespace syncopate::test {

struct NumericOption {
  std::string name, type;
};

[[nodiscard]] inline std::vector<NumericOption> numeric_options(const std::string& help) {
  const std::set<std::string> types{"INT", "UINT", "FLOAT", "SECONDS", "BYTES", "COUNT", "RATE"};
  std::vector<NumericOption> found;
  for (const std::string& line : lines_of(help)) {
    std::istringstream words(line);
    std::string names, type;
    if (!(words >> names >> type) || !line.starts_with("  -")) continue;
    type = type.substr(0, type.find_first_of(":="));
    if (types.contains(type)) found.push_back({names.substr(names.find("--")), type});
  }
  return found;
}

/// Returns how many options there were.
inline std::size_t expect_refusals(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  words.emplace_back("--help");
  const std::vector<NumericOption> options = numeric_options(syncopate(words).output);
  const auto expect_refusal = [&](const NumericOption& option, const std::string& value) {
    words.resize(command.size());
    words.insert(words.end(), {option.name, value});
    const Ended ended = syncopate(words);
    EXPECT_EQ(ended.code, 2) << option.name << ' ' << value << ": " << ended.error;
    for (const std::string& part : {option.name + ": ", "'" + value + "'", std::string("; allowed: ")})
      EXPECT_NE(ended.error.find(part), std::string::npos) << option.name << ' ' << value << ": " << ended.error;
  };
  bool has_integer = false;
  for (const NumericOption& option : options) {
    expect_refusal(option, "-1");
    if (has_integer || (option.type != "INT" && option.type != "UINT")) continue;
    has_integer = true;  // all integers have one parser
    expect_refusal(option, "99999999999999999999999");
  }
  return options.size();
}

}  // namespace syncopate::test
