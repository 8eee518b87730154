// The rows that the training program prints under --json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "process/run_program.hpp"

namespace syncopate::test {

/// Those of an event, of all ranks, in the order in which they were printed.
inline std::vector<nlohmann::json> rows(const Ended& ended, const std::string& event) {
  std::vector<nlohmann::json> found;
  for (const std::string& line : lines_of(ended.output)) {
    auto row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_object() && row.value("event", "") == event) found.push_back(std::move(row));
  }
  return found;
}

}  // namespace syncopate::test
