// The screen: ranks' lines with their prefixes on stdout and stderr, and one progress line below them on a terminal.
#include "launch/screen.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "syncopate/tooling/json.hpp"

namespace syncopate::tools::launch {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// Cut to one terminal line, at a character's boundary (UTF-8 continuation bytes are 10xxxxxx).
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t shown = 0, bytes = 0;
  while (bytes < text.size()) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xC0) != 0x80;
    if (begins && ++shown >= columns) break;
    ++bytes;
  }
  return text.substr(0, bytes);
}

std::string as_row(const job::Line& line) {
  if (!line.name.empty()) return text_of_json(nlohmann::json{{"from", line.name}, {"line", line.text}}) + "\n";
  return text_of_json(nlohmann::json{{"rank", line.rank}, {"line", line.text}}) + "\n";
}

}  // namespace

bool is_json_object(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || line[first] != '{') return false;
  const auto last = line.find_last_not_of(" \t\r");
  return line[last] == '}' && nlohmann::json::accept(line);
}

Screen::Screen(bool json)
    : json_(json), output_is_terminal_(isatty(STDOUT_FILENO) == 1), error_is_terminal_(isatty(STDERR_FILENO) == 1) {}

Screen::~Screen() {
  if (!progress_.empty()) write_error(kClearLine, ready_within(std::chrono::milliseconds(0)));
}

/// One write a line of up to PIPE_BUF bytes, so that lines of this and other processes stay whole.
void Screen::put(const job::Line& line, const std::string& text) {
  const bool is_error = line.stream == job::Stream::error;
  const bool crosses = !progress_.empty() && (is_error ? error_is_terminal_ : output_is_terminal_);
  if (crosses) write_error(kClearLine, line.ready);
  is_error ? write_error(text, line.ready) : write_output(text, line.ready);
  if (crosses) write_error(progress_, line.ready);
}

void Screen::show(const job::Line& line) {
  if (line.stream == job::Stream::progress) return progress(line);
  if (line.stream == job::Stream::output && is_json_object(line.text)) return put(line, std::string(line.text) + "\n");
  if (line.stream == job::Stream::output && json_) return put(line, as_row(line));
  if (line.name.empty()) return put(line, fmt::format("[{}] {}\n", line.rank, line.text));
  put(line, fmt::format("[{}] {}\n", line.name, line.text));
}

void Screen::progress(const job::Line& line) {
  if (!error_is_terminal_) return;
  progress_ = cut(line.text, terminal_columns());
  write_error(std::string(kClearLine) + progress_, line.ready);
}

}  // namespace syncopate::tools::launch
