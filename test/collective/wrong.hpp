// Wrong use as a parameter of tests: a call, and the words that its error has on every rank.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::test {

struct Wrong {
  std::string what;
  std::function<void(Group&)> call;
  std::vector<std::string> words{};  ///< that the message has, on every rank
  friend void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.what; }
};

inline std::string wrong_title(const testing::TestParamInfo<Wrong>& info) { return info.param.what; }

inline std::vector<float> ones(std::size_t count) { return std::vector<float>(count, 1); }

}  // namespace syncopate::test
