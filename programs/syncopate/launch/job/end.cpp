// The end of a job: its words.
#include "launch/job/end.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include "launch/process/signals.hpp"

namespace syncopate::tools::launch::job {

std::string RankEnd::description() const {
  if (signal == 0) return fmt::format("{} exited with code {}", name, code);
  const bool is_request = signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
  return fmt::format("{} was {} by {}", name, is_request ? "ended" : "killed", process::signal_name(signal));
}

std::string End::description() const {
  if (interrupted) return fmt::format("interrupted by {}", process::signal_name(forwarded_signal));
  if (first_failure < 0) return fmt::format("all {} ranks succeeded", ranks.size());
  const RankEnd& end = ranks[static_cast<std::size_t>(first_failure)];
  std::string text = end.description();
  if (ranks.size() > 1) text += is_blamed ? ", the first to fail" : ", the first to end in failure";
  if (!stopped.empty())
    text += fmt::format("; rank{} {} {} stopped then", stopped.size() == 1 ? "" : "s", fmt::join(stopped, ", "),
                        stopped.size() == 1 ? "was" : "were");
  return text;
}

}  // namespace syncopate::tools::launch::job
