// Lines: cuts what a process writes into whole lines, however it arrives.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace syncopate::tools::launch::job {

/// One output stream of one process. A line is passed on without its '\n'; the last one also where the '\n' is
/// missing. A line longer than kLongest is passed on in pieces, so that a stream without '\n' cannot fill the memory.
class LineSplitter final {
 public:
  static constexpr std::size_t kLongest = std::size_t{64} << 20;
  using Sink = std::function<void(std::string_view)>;

  void take(std::string_view bytes, const Sink& line);
  void finish(const Sink& line);
  /// The part of the current line that has arrived.
  [[nodiscard]] std::string_view unfinished() const noexcept { return pending_; }
  /// Forgets all but the last `count` bytes of the unfinished line.
  void keep_last(std::size_t count) { pending_.erase(0, pending_.size() - std::min(count, pending_.size())); }

 private:
  std::string pending_;
};

/// The visible text of a line with carriage returns: the part after the last one.
[[nodiscard]] std::string_view as_overwritten(std::string_view line);

}  // namespace syncopate::tools::launch::job
