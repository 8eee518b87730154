// Law: approximates any function of bytes by lines; it makes costs from the cost laws of the collective algorithms.
// A range is halved until the line through its ends agrees with the law to one part in ten thousand.
//
//   fits(lo, hi):  |T(m) - line(m)| <= 1e-4 T(m)  at m = 1/4, 1/2, 3/4 of the way; else split at the middle
#include <algorithm>
#include <cmath>

#include "base/require.hpp"
#include "schedule/cost.hpp"

namespace syncopate::schedule::cost {

namespace {

constexpr double kTolerance = 1e-4;
constexpr double kNarrowest =
    1.0 / 4096;  // relative to a range's upper end; a jump of the law is spread over this range

struct Range {
  Point low, high;
};

bool is_straight(const std::function<double(double)>& law, const Range& range) {
  for (const double part : {0.25, 0.5, 0.75}) {
    const double bytes = range.low.bytes + part * (range.high.bytes - range.low.bytes);
    const double line = range.low.seconds + part * (range.high.seconds - range.low.seconds);
    const double truth = law(bytes);
    if (std::abs(line - truth) > kTolerance * truth) return false;
  }
  return true;
}

Cost follow(const CostInputs& inputs) {
  base::require(inputs.law != nullptr && inputs.largest_bytes >= 1,
                "a law needs a function and a largest number of bytes");
  const auto& law = inputs.law;
  std::vector<Range> open{{{0, law(0)}, {inputs.largest_bytes, law(inputs.largest_bytes)}}};
  std::vector<Piece> pieces;
  while (!open.empty()) {
    const Range range = open.back();
    open.pop_back();
    const double width = range.high.bytes - range.low.bytes;
    if (width > 1 && width > kNarrowest * range.high.bytes && !is_straight(law, range)) {
      const double middle = range.low.bytes + width / 2;
      const Point split{middle, law(middle)};
      open.push_back({split, range.high});
      open.push_back({range.low, split});
      continue;
    }
    pieces.push_back({range.low.bytes, range.low.seconds, (range.high.seconds - range.low.seconds) / width});
  }
  pieces.back().seconds_per_byte = std::max(0.0, pieces.back().seconds_per_byte);  // a law may jump down at its end
  return Cost(std::move(pieces));
}

}  // namespace

extern constinit const CostModel law{
    .name = "law",
    .summary = "Any law of the bytes, such as a collective algorithm's, followed by lines to 1 part in 10000",
    .source = "cost laws of shelf algorithm",
    .cost = follow,
};

}  // namespace syncopate::schedule::cost
