// Stage: where a benchmark's contenders run one after the other: this machine, or a lab that lives as long as it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "bench/contenders.hpp"
#include "bench/scratch.hpp"
#include "command.hpp"
#include "lab/lab.hpp"

namespace syncopate::tools::bench {

/// How one run of a contender ended.
struct Outcome {
  int code = 0;
  int signal = 0;     ///< of this process, forwarded; not 0: the user wants to stop
  std::string words;  ///< what happened, and the last that the contender wrote on stderr
};

class Stage final {
 public:
  using LineSink = std::function<void(const std::string& line)>;

  /// Starts the lab if there is to be one; throws what that throws.
  Stage(const Task& task, const Session& session);

  /// Runs a contender to its end; `sink` takes each line that it writes on stdout.
  [[nodiscard]] Outcome run(const std::string& name, const LineSink& sink);

 private:
  [[nodiscard]] std::vector<std::string> bounded(const std::string& name, std::vector<std::string> command) const;

  const Task& task_;
  const Session& session_;
  std::optional<lab::Lab> lab_;
  Scratch scratch_;
  int runs_ = 0;
};

}  // namespace syncopate::tools::bench
