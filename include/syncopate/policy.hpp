// Policy: decides which gradients share a bucket, from the sizes of layers, their times and the cost of an exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/hook.hpp"

namespace syncopate::schedule {

struct Layer {
  std::string name;
  std::size_t bytes = 0;
  double backward_s = 0;  ///< 0: not measured
};

struct Timeline {
  double forward_s = 0;
  std::vector<Layer> layers;
};

/// Layers [first, last] travel together.
struct Bucket {
  std::size_t first = 0, last = 0;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// Every layer in exactly one bucket. Buckets are in the order of exchange: the last layer's bucket comes first,
/// because its gradients are ready first.
using Partition = std::vector<Bucket>;

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

struct PolicyOptions {
  std::size_t fusion_bytes = 0;  ///< size of a bucket; 0: from model and ranks (policy/fusion)
  int ranks = 1;
  std::size_t first_fusion_bytes = 0;  ///< size of the first bucket; 0: equal to the others
  bool fuses_past = false;             ///< a bucket closes after the layer that reaches its size, not before it
  std::optional<Cost> cost;            ///< cost of one exchange, for policies that weigh times
};

/// The inputs that a policy needs.
enum class Needs : std::uint8_t {
  sizes,   ///< sizes of the layers
  times,   ///< sizes, ready times of gradients, and the cost of an exchange
  events,  ///< it decides during the step; its `partition` predicts the buckets and needs times
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// The partition of `timeline` (at least one layer), in the order of exchange. Throws Misuse if it needs times, and
  /// `timeline` or `options` has none.
  Hook<Partition(const Timeline& timeline, const PolicyOptions& options)> partition;
  Needs needs = Needs::sizes;
};

/// The cost in `options`; throws Misuse naming the policy if there is none, or if `timeline` has no backward times.
[[nodiscard]] const Cost& required_cost(std::string_view policy, const Timeline& timeline,
                                        const PolicyOptions& options);
}  // namespace syncopate::schedule
