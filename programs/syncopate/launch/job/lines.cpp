// Lines: cuts what a process writes into whole lines, however it arrives.
#include "launch/job/lines.hpp"

namespace syncopate::tools::launch::job {

void LineSplitter::take(std::string_view bytes, const Sink& line) {
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    if (pending_.empty()) {
      line(bytes.substr(0, end));
    } else {
      pending_.append(bytes.substr(0, end));
      line(pending_);
      pending_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  pending_.append(bytes);
  if (pending_.size() > kLongest) finish(line);
}

void LineSplitter::finish(const Sink& line) {
  if (!pending_.empty()) line(pending_);
  pending_.clear();
}

std::string_view as_overwritten(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const auto last = line.rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

}  // namespace syncopate::tools::launch::job
