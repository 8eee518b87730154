// Codec choice: which bucket takes which of the codecs that --codec auto:A+B+none allows, as all ranks know it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::train {

[[nodiscard]] inline bool chooses_codecs(std::string_view codec) { return codec.starts_with("auto:"); }

class ChosenCodecs final {
 public:
  ChosenCodecs() = default;  ///< nothing was to be chosen
  /// Rank 0's choice by its own costs; every rank calls it. Throws Misuse as choose_codecs does, and Mismatch where
  /// ranks have different buckets.
  ChosenCodecs(Group& group, std::vector<std::string> ways, std::vector<CodecChoice> choices);

  [[nodiscard]] std::vector<std::string> by_gradient() const;  ///< empty if nothing was chosen
  /// The codecs that no bucket takes, and what it would lose with each; empty: all are used.
  [[nodiscard]] std::string unused() const;
  /// Adds the codec of each bucket, and what its exchange is predicted to take with it, to `buckets` of a run's record.
  void describe(nlohmann::ordered_json& buckets) const;

 private:
  std::vector<std::string> ways_;
  std::vector<CodecChoice> choices_;
};

}  // namespace syncopate::train
