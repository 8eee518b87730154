// Codec choice: the codec of each bucket among those that --codec auto:A+B+none allows, equal on all ranks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::train {

class ChosenCodecs final {
 public:
  ChosenCodecs() = default;  ///< no choice
  /// Rank 0's choice by its own costs. A collective. Throws Misuse as choose_codecs does, and Mismatch if ranks have
  /// different buckets.
  ChosenCodecs(Group& group, std::vector<std::string> ways, std::vector<CodecChoice> choices);

  [[nodiscard]] std::vector<std::string> by_gradient() const;  ///< empty if nothing was chosen
  /// The codecs that no bucket uses, and the predicted loss with each; empty: all are used.
  [[nodiscard]] std::string unused() const;
  /// Adds each bucket's codec, and the predicted time of its exchange, to `buckets` of a run's record.
  void describe(nlohmann::ordered_json& buckets) const;

 private:
  std::vector<std::string> ways_;
  std::vector<CodecChoice> choices_;
};

}  // namespace syncopate::train
