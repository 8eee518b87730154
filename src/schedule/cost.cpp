// Costs: evaluation of piecewise linear costs, least squares, and models by name.
#include "schedule/cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/named.hpp"

namespace syncopate::schedule {

namespace {
bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }
}  // namespace

Cost::Cost(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
  base::require(!pieces_.empty() && pieces_.front().begin_bytes == 0, "a cost must have a first piece at 0 bytes");
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    base::require(i == 0 || pieces_[i].begin_bytes > pieces_[i - 1].begin_bytes,
                  "sizes of a cost must ascend: {} bytes after {}", pieces_[i].begin_bytes,
                  i == 0 ? 0 : pieces_[i - 1].begin_bytes);
    base::require(is_time(pieces_[i].seconds), "a cost of {} s at {} bytes; allowed: 0 or more", pieces_[i].seconds,
                  pieces_[i].begin_bytes);
    base::require(std::isfinite(pieces_[i].seconds_per_byte), "a cost of {} s per byte at {} bytes",
                  pieces_[i].seconds_per_byte, pieces_[i].begin_bytes);
  }
  base::require(pieces_.back().seconds_per_byte >= 0,
                "a cost's last piece changes by {} s per byte; allowed: 0 or more", -pieces_.back().seconds_per_byte);
}

double Cost::operator()(double bytes) const noexcept {
  auto above = std::ranges::upper_bound(pieces_, bytes, {}, &Piece::begin_bytes);
  if (above != pieces_.begin()) --above;
  const double seconds = above->seconds + (bytes - above->begin_bytes) * above->seconds_per_byte;
  return agreement_s + std::max(seconds, cpu_s_per_byte * bytes);
}

AffineFit fit_affine(std::span<const Point> points) {
  const auto n = static_cast<double>(points.size());
  double mean_bytes = 0, mean_s = 0;
  for (const Point& point : points) {
    base::require(is_time(point.seconds) && point.seconds > 0, "{} bytes took {} s; allowed: above 0", point.bytes,
                  point.seconds);
    mean_bytes += point.bytes / n;
    mean_s += point.seconds / n;
  }
  double bytes_squared = 0, mixed = 0, seconds_squared = 0;
  for (const Point& point : points) {
    bytes_squared += (point.bytes - mean_bytes) * (point.bytes - mean_bytes);
    mixed += (point.bytes - mean_bytes) * (point.seconds - mean_s);
    seconds_squared += (point.seconds - mean_s) * (point.seconds - mean_s);
  }
  base::require(bytes_squared > 0, "a line needs two sizes or more");
  AffineFit fit;
  fit.b_s_per_byte = mixed / bytes_squared;
  fit.a_s = mean_s - fit.b_s_per_byte * mean_bytes;
  fit.r_squared = seconds_squared > 0 ? mixed * mixed / (bytes_squared * seconds_squared) : 1;
  fit.worst_error = -1;
  for (const Point& point : points) {
    fit.errors.push_back(std::abs(fit.a_s + fit.b_s_per_byte * point.bytes - point.seconds) / point.seconds);
    if (fit.errors.back() <= fit.worst_error) continue;
    fit.worst_error = fit.errors.back();
    fit.worst_bytes = point.bytes;
  }
  return fit;
}

const CostModel& cost_model_named(std::string_view name) { return base::entry_named("cost", name, cost_models()); }

}  // namespace syncopate::schedule
