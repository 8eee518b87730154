// Cost: what an exchange takes by its bytes, as a value; and the shelf cost/, the ways to come by one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::schedule {

/// Seconds that an exchange of so many bytes took.
struct Point {
  double bytes = 0, seconds = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

/// A straight line that holds from begin_bytes to the begin of the next one.
struct Piece {
  double begin_bytes = 0, seconds = 0, seconds_per_byte = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// T(M): seconds the channel is taken by one exchange of M bytes. Pieces of lines; the last goes on for ever.
class Cost final {
 public:
  Cost() : pieces_(1) {}  ///< free
  /// Begins ascend from 0. Throws Misuse otherwise, or where a time is no finite number of at least 0.
  explicit Cost(std::vector<Piece> pieces);
  static Cost affine(double a_s, double b_s_per_byte) { return Cost({{0, a_s, b_s_per_byte}}); }

  [[nodiscard]] double operator()(double bytes) const noexcept;
  /// a of a + b M: what a message costs before its first byte.
  [[nodiscard]] double startup_s() const noexcept { return pieces_.front().seconds; }
  [[nodiscard]] std::span<const Piece> pieces() const noexcept { return pieces_; }

  /// What moving a byte takes from computing on the same rank, in seconds. No exchange is shorter than what it takes.
  double cpu_s_per_byte = 0;
  /// What passes before the first byte leaves, however many follow: ranks agree on what leaves (policy online).
  double agreement_s = 0;

  friend bool operator==(const Cost&, const Cost&) = default;

 private:
  std::vector<Piece> pieces_;
};

/// A line through points, and how far it is from them.
struct AffineFit {
  double a_s = 0, b_s_per_byte = 0;
  double r_squared = 0;
  std::vector<double> errors;  ///< by point: |fit - measured| / measured
  double worst_error = 0;
  double worst_bytes = 0;  ///< where it is
};
/// Ordinary least squares; needs two sizes or more (Misuse).
[[nodiscard]] AffineFit fit_affine(std::span<const Point> points);

/// What an entry of the shelf may need; each says in its summary what it reads.
struct CostInputs {
  double ranks = 1;
  double alpha_s = 0, beta_s_per_byte = 0,
         gamma_s_per_byte = 0;              ///< one link: startup, per byte sent, per byte reduced
  std::string algorithm = "ring";           ///< a row of the paper's Table II
  std::vector<Point> points;                ///< measured or simulated; sizes ascend (`observed`: in any order)
  double allowed_error = 0.1;               ///< of a fit, at its worst point
  std::function<double(double bytes)> law;  ///< any law, e.g. that of a collective algorithm
  double largest_bytes = 1 << 30;           ///< up to where a law is followed
};

struct CostModel {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  Cost (*cost)(const CostInputs& inputs);
};

/// Every way, by name (generated from the folder cost/).
[[nodiscard]] std::span<const CostModel* const> cost_models();
[[nodiscard]] const CostModel& cost_model_named(std::string_view name);  ///< throws Misuse that lists them

}  // namespace syncopate::schedule
