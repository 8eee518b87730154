// Laws of exchanges: bits of an index, bytes of a packet and of a port, break-even densities.
#include "bench/exchange/law.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::tools::bench {

namespace {

constexpr double kValueBytes = 4;

/// Bytes that each of `parts` participants sends in an all-reduce.
double dense_bytes(int parts, double elements) { return 2.0 * (parts - 1) / parts * kValueBytes * elements; }

/// The bytes of the host that sends the most, by the plans of its ranks.
double planned_bytes(const ExchangeSubject& subject, const ExchangePlace& place) {
  const auto per_host = static_cast<std::uint32_t>(place.ranks_per_host);
  const std::uint64_t bytes = place.elements * static_cast<std::uint64_t>(kValueBytes);
  const std::vector<Plan> plans = plan_collective(
      {.algorithm = subject.algorithm, .ranks = place.ranks(), .bytes = bytes, .ranks_per_host = per_host});
  std::vector<double> of_host(static_cast<std::size_t>(place.hosts));
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank)
    for (const PlanStep& step : plans[rank].steps)
      if (step.act == Act::send && step.peer / per_host != rank / per_host)
        of_host[rank / per_host] += static_cast<double>(bytes) * step.chunk_count / plans[rank].chunks;
  return *std::ranges::max_element(of_host);
}

}  // namespace

double index_bits(double density, IndexLaw law) {
  constexpr int kMostLowBits = 31;
  if (law == IndexLaw::pairs) return 32;
  double least = 1 / density;
  for (int k = 1; k <= kMostLowBits; ++k) least = std::min(least, k + 1 / (1 - std::pow(1 - density, std::exp2(k))));
  return least;
}

double packet_bytes(double density, double elements, IndexLaw law) {
  return std::ceil(density * elements) * (kValueBytes + index_bits(density, law) / 8);
}

double port_bytes(const ExchangeSubject& subject, const ExchangePlace& place, IndexLaw law) {
  const double elements = static_cast<double>(place.elements), n = place.ranks_per_host;
  const bool flat = subject.exchange != "hierarchical";
  if (subject.dense() && subject.algorithm != "ring" && subject.algorithm != "torus_2d")
    return planned_bytes(subject, place);
  if (subject.dense()) return dense_bytes(subject.algorithm == "ring" ? place.ranks() : place.hosts, elements);
  const double bytes = flat ? (place.ranks() - 1) * packet_bytes(subject.density, elements, law)
                            : n * (place.hosts - 1) * packet_bytes(subject.density, elements / n, law);
  if (law == IndexLaw::pairs) return bytes;
  return std::min(bytes, dense_bytes(flat ? place.ranks() : place.hosts, elements));
}

double break_even(int parts, IndexLaw law) {
  double low = 1e-9, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    const bool pays = middle * (kValueBytes + index_bits(middle, law) / 8) < 2 * kValueBytes / parts;
    (pays ? low : high) = middle;
  }
  return low;
}

}  // namespace syncopate::tools::bench
