// The thesis' replay: models, contenders and rows of `bench server --replay thesis`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "syncopate/simulate.hpp"

namespace syncopate::tools::bench {

/// A model as the thesis trained it on one machine.
struct ReplayedModel {
  std::string name;  ///< of an architecture of the catalogue
  double step_s = 0;
};
/// "resnet110", "googlenet" and "inception_v4_slim". Throws Misuse for others.
[[nodiscard]] ReplayedModel replayed_model(const std::string& name);

/// A contender: the options combined in a run. The first contender is one machine alone.
struct ReplayedContender {
  std::string name, flow, consistency = "bsp", codec = "none", answers = "none";
};
[[nodiscard]] const std::vector<ReplayedContender>& replayed_contenders();
/// Those of these names, in the order of the names; "all" alone: all. Throws Misuse: no name, or an unknown one.
[[nodiscard]] std::vector<ReplayedContender> replayed_contenders(const std::vector<std::string>& names);

struct ReplayScene {
  int workers = 4, servers = 4;
  std::string placement = "lpt";
  double bits_per_s = 0;  ///< of one host's port
  double dilation = 1;    ///< of computing
};

/// The simulator's step of a contender, at the line's rate with the headers of Ethernet's frames.
[[nodiscard]] ServerSimulation predicted(const ReplayedModel& model, const ReplayedContender& contender,
                                         const ReplayScene& scene);

class ReplayRows final {
 public:
  explicit ReplayRows(ReplayScene scene) : scene_(std::move(scene)) {}
  /// Takes a raw row as a worker prints it (bench/server/replay.hpp); other lines give false. Throws Corrupt for a raw
  /// row that lacks something, or is of no contender or model.
  bool take(const std::string& line);
  [[nodiscard]] bool empty() const noexcept { return series_.empty(); }
  [[nodiscard]] bool all_correct() const;
  /// By model, then in the order of the contenders. Speed-ups are null without the machine alone.
  [[nodiscard]] std::vector<nlohmann::json> json() const;
  [[nodiscard]] std::string table() const;

 private:
  struct Series {
    ReplayedModel model;
    ReplayedContender contender;
    bool correct = true;
    double stalest = 0;
    std::vector<double> seconds, pushed_bytes, pulled_bytes;
  };
  [[nodiscard]] const ReplayedContender& contender_of(const std::string& name) const;

  const ReplayScene scene_;
  std::vector<Series> series_;
};

}  // namespace syncopate::tools::bench
