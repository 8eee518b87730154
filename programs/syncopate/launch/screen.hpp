// The screen: ranks' lines with their prefixes on stdout and stderr, and one progress line below them on a terminal.
#pragma once

#include <string>
#include <string_view>

#include "launch/job/supervise.hpp"
#include "syncopate/tooling/standard_streams.hpp"

namespace syncopate::tools::launch {

class Screen final {
 public:
  /// `json`: a line on stdout that is not a JSON object becomes {"rank", "line"}, so that stdout holds nothing else.
  explicit Screen(bool json);
  ~Screen();  ///< erases the last progress line
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void show(const job::Line& line);
  [[nodiscard]] bool is_terminal() const noexcept { return error_is_terminal_; }

 private:
  void put(const job::Line& line, const std::string& text);
  /// Draws the line over the previous progress line; nothing where stderr is not a terminal.
  void progress(const job::Line& line);

  bool json_;
  bool output_is_terminal_;
  bool error_is_terminal_;
  std::string progress_;  ///< what stands on the terminal's last line now
};

/// Whether a line is one JSON object: it passes `syncopate run` as it is.
[[nodiscard]] bool is_json_object(std::string_view line);

}  // namespace syncopate::tools::launch
