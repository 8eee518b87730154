// Scratch: an empty folder for as long as a benchmark runs.
#pragma once

#include <string>

namespace syncopate::tools::bench {

class Scratch final {
 public:
  /// Throws SystemFailure where none can be made.
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace syncopate::tools::bench
