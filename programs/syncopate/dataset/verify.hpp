// Checking a set of pictures: each is read and decoded once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::tools::dataset {

struct Verdict {
  std::string format;
  std::size_t classes = 0, train = 0, test = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> corrupt;  ///< "FILE: why", in the order of the set
};

/// Throws what opening the set throws, and SystemFailure where a file cannot be read.
[[nodiscard]] Verdict verify(const std::string& folder, int threads);

}  // namespace syncopate::tools::dataset
