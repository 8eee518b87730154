// Laws of exchanges: bits of an index, bytes of a packet and of a port, break-even densities.
#include "bench/exchange/law.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate::tools::bench {

namespace {

constexpr double kValueBytes = 4;

/// Bytes that each of `parts` participants sends in an all-reduce.
double dense_bytes(int parts, double elements) { return 2.0 * (parts - 1) / parts * kValueBytes * elements; }

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
