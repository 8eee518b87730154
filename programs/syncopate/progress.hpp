// Progress: one line on the terminal that is overwritten while a command works.
#pragma once

#include <string>
#include <string_view>

#include "command.hpp"

namespace syncopate::tools {

/// Nothing where stderr is not a terminal, or with --json. The line is gone when the object is.
class Progress final {
 public:
  Progress(const Session& session, std::string_view command);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& text) const;
  void clear() const;

 private:
  bool shown_;
  std::string command_;
};

}  // namespace syncopate::tools
