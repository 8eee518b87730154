// Progress: one line on the terminal that is overwritten while a command works.
#include "progress.hpp"

#include <unistd.h>

namespace syncopate::tools {

Progress::Progress(const Session& session, std::string_view command)
    : shown_(isatty(STDERR_FILENO) == 1 && !session.json), command_(command) {}

void Progress::show(const std::string& text) const {
  if (shown_) print_error("\r\033[K{}: {}", command_, text);
}

void Progress::clear() const {
  if (shown_) print_error("\r\033[K");
}

}  // namespace syncopate::tools
