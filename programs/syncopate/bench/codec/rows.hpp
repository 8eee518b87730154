// Rows of codecs: the steps of all rounds become one row per codec and contender, as JSON or as a table.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "syncopate/tooling/codec_loopback.hpp"

namespace syncopate::tools::bench {

/// Times and bytes of one codec over all rounds; times in seconds.
struct CodecSeries {
  std::string codec, contender;
  std::size_t elements = 0;
  double density = 1;        ///< as asked for; 1: nothing is left out
  std::size_t selected = 0;  ///< elements of a packet
  double error = 0;          ///< of a packet without feedback: |decoded - input| / |input|, L2
  LoopbackStep sizes{};      ///< of the last step
  std::vector<double> encode_s{}, decode_s{};
  std::vector<double> read_s{};  ///< one read of the same input, just before

  void add(const LoopbackStep& step, double read_seconds);
  /// Encoding in units of one read.
  [[nodiscard]] double reads() const;
};

[[nodiscard]] nlohmann::json row_of(const CodecSeries& series);
[[nodiscard]] std::string table_of(const std::vector<CodecSeries>& rows);

/// |decoded - input| / |input|, L2; 0 of nothing but zeros.
[[nodiscard]] double relative_error(std::span<const float> decoded, std::span<const float> input);

}  // namespace syncopate::tools::bench
