// Cost: the time of an exchange as a function of its bytes; and the shelf cost/, the models that produce one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::schedule {

/// A measured exchange.
struct Point {
  double bytes = 0, seconds = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

/// A straight line, valid from begin_bytes to the start of the next piece.
struct Piece {
  double begin_bytes = 0, seconds = 0, seconds_per_byte = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// T(M): seconds that an exchange of M bytes occupies the channel. Piecewise linear; the last piece has no end.
class Cost final {
 public:
  Cost() : pieces_(1) {}  ///< every exchange takes no time
  /// Pieces ascend from 0 bytes. Throws Misuse otherwise, or if a time is not a finite number of at least 0.
  explicit Cost(std::vector<Piece> pieces);
  static Cost affine(double a_s, double b_s_per_byte) { return Cost({{0, a_s, b_s_per_byte}}); }

  [[nodiscard]] double operator()(double bytes) const noexcept;
  /// The start-up time of a message: a in a + b M.
  [[nodiscard]] double startup_s() const noexcept { return pieces_.front().seconds; }
  [[nodiscard]] std::span<const Piece> pieces() const noexcept { return pieces_; }

  /// CPU seconds per exchanged byte that computing on the same rank loses. No exchange is shorter than this.
  double cpu_s_per_byte = 0;
  /// Seconds that the ranks need to agree on a bucket before it leaves, whatever its size (policy online).
  double agreement_s = 0;

  friend bool operator==(const Cost&, const Cost&) = default;

 private:
  std::vector<Piece> pieces_;
};

/// A line fitted through points, and its errors.
struct AffineFit {
  double a_s = 0, b_s_per_byte = 0;
  double r_squared = 0;
  std::vector<double> errors;  ///< by point: |fit - measured| / measured
  double worst_error = 0;
  double worst_bytes = 0;  ///< the size with the worst error
};
/// Ordinary least squares; needs at least two sizes (Misuse).
[[nodiscard]] AffineFit fit_affine(std::span<const Point> points);

/// Inputs of all entries of the shelf; each entry's summary names those that it reads.
struct CostInputs {
  double ranks = 1;
  double alpha_s = 0, beta_s_per_byte = 0,
         gamma_s_per_byte = 0;              ///< one link: start-up, per byte sent, per byte reduced
  std::string algorithm = "ring";           ///< a row of the paper's Table II
  std::vector<Point> points;                ///< measured or simulated; sizes ascend (`observed`: in any order)
  double allowed_error = 0.1;               ///< of a fit, at its worst point
  std::function<double(double bytes)> law;  ///< any law, e.g. that of a collective algorithm
  double largest_bytes = 1 << 30;           ///< size up to which a law is approximated
};

struct CostModel {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  Cost (*cost)(const CostInputs& inputs);
};

/// Every model, by name (generated from the folder cost/).
[[nodiscard]] std::span<const CostModel* const> cost_models();
[[nodiscard]] const CostModel& cost_model_named(std::string_view name);  ///< throws Misuse that lists them

}  // namespace syncopate::schedule
