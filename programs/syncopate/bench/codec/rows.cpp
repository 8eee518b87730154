// Rows of codecs: medians, reads, bits per index, and how they are shown.
#include "bench/codec/rows.hpp"

#include <fmt/format.h>

#include <cmath>

#include "bench/rows.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

void CodecSeries::add(const LoopbackStep& step, double read_seconds) {
  sizes = step;
  encode_s.push_back(step.encode_s);
  decode_s.push_back(step.decode_s);
  read_s.push_back(read_seconds);
}

double CodecSeries::reads() const { return median(encode_s) / median(read_s); }

double relative_error(std::span<const float> decoded, std::span<const float> input) {
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const double whole = input[i], difference = decoded[i] - whole;
    lost += difference * difference;
    all += whole * whole;
  }
  return all > 0 ? std::sqrt(lost / all) : 0;
}

nlohmann::json row_of(const CodecSeries& series) {
  return {{"codec", series.codec},
          {"contender", series.contender},
          {"elements", series.elements},
          {"density", series.density},
          {"encode_seconds", timing(series.encode_s)},
          {"decode_seconds", timing(series.decode_s)},
          {"read_seconds", timing(series.read_s)},
          {"wire_bytes", series.sizes.wire_bytes},
          {"index_bytes", series.sizes.index_bytes},
          {"selected", series.selected},
          {"reads", series.reads()},
          {"error", series.error}};
}

std::string table_of(const std::vector<CodecSeries>& rows) {
  std::string text = fmt::format("{:<18}{:<13}{:>10}{:>8}{:>10}{:>12}{:>11}{:>12}{:>9}{:>11}\n", "codec", "contender",
                                 "encode", "reads", "decode", "wire", "of dense", "selected", "index", "error");
  for (const CodecSeries& row : rows) {
    const double dense = 4.0 * static_cast<double>(row.elements), wire = static_cast<double>(row.sizes.wire_bytes);
    const double index_bits = 8.0 * static_cast<double>(row.sizes.index_bytes);
    const std::string index = index_bits > 0 && row.selected > 0
                                  ? fmt::format("{:.2f} b", index_bits / static_cast<double>(row.selected))
                                  : "-";
    text += fmt::format("{:<18}{:<13}{:>10}{:>8.2f}{:>10}{:>12}{:>11}{:>12}{:>9}{:>11.4g}\n", row.codec, row.contender,
                        format_seconds(median(row.encode_s)), row.reads(), format_seconds(median(row.decode_s)),
                        format_bytes(wire), fmt::format("1/{:.4g}", dense / wire), row.selected, index, row.error);
  }
  return text;
}

}  // namespace syncopate::tools::bench
