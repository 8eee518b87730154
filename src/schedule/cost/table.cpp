// Table: measured (or simulated) points, joined by lines; exact at every point.
// For all-reduces that are not affine: MPI libraries switch algorithms by size, with jumps of up to 4x.
//
//   T |          .---'      below the first point: its time (a start-up time does not shrink)
//     |     .--'            beyond the last point: the slope of the last line that rises
//     |____'
//     '---------------- M
#include <algorithm>

#include "base/require.hpp"
#include "schedule/cost.hpp"

namespace syncopate::schedule::cost {

namespace {

Cost join(const CostInputs& inputs) {
  const std::vector<Point>& points = inputs.points;
  base::require(!points.empty(), "a cost table needs at least one row [bytes, seconds]");
  base::require(points.front().bytes >= 0, "a cost table starts at {} bytes; allowed: 0 or more", points.front().bytes);
  std::vector<Piece> pieces;
  if (points.front().bytes > 0) pieces.push_back({0, points.front().seconds, 0});
  for (std::size_t i = 0; i < points.size(); ++i) {
    pieces.push_back({points[i].bytes, points[i].seconds, 0});
    if (i + 1 == points.size()) break;
    const double step = points[i + 1].bytes - points[i].bytes;
    base::require(step > 0, "sizes of a cost table must ascend: {} bytes after {}", points[i + 1].bytes,
                  points[i].bytes);
    pieces.back().seconds_per_byte = (points[i + 1].seconds - points[i].seconds) / step;
  }
  // More bytes take longer, so a last line that falls is noise, or a change of algorithm: it does not continue.
  for (std::size_t i = pieces.size() - 1; i > 0 && pieces.back().seconds_per_byte <= 0; --i)
    pieces.back().seconds_per_byte = std::max(0.0, pieces[i - 1].seconds_per_byte);
  return Cost(std::move(pieces));
}

}  // namespace

extern constinit const CostModel table{
    .name = "table",
    .summary = "Measured points joined by lines; the first time below them, the last rising slope beyond",
    .source = "measured all-reduces are not affine",
    .cost = join,
};

}  // namespace syncopate::schedule::cost
