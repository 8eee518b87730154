// Laws of exchanges between m hosts of n ranks: the bytes that a host's port must send, dense and with top-k.
#pragma once

#include <cstddef>
#include <string>

namespace syncopate::tools::bench {

/// One way of combining a gradient. Codec and algorithm as in its row.
struct ExchangeSubject {
  std::string exchange, codec, algorithm;
  double density = 1;  ///< 1: dense
  [[nodiscard]] bool dense() const { return codec == "none"; }
};

struct ExchangePlace {
  int hosts = 2, ranks_per_host = 2;
  std::size_t elements = 0;
  [[nodiscard]] int ranks() const { return hosts * ranks_per_host; }
};

/// How the indices of a selection travel.
enum class IndexLaw : unsigned char {
  coded,  ///< as ours do: gaps in the best Golomb-Rice code, min over k of k + 1/(1 - (1-p)^(2^k)); k = 0 is a bitmap
  pairs,  ///< in 32 bits, as papers count them
};

/// Bits of an index where a share `density` of all elements is selected.
[[nodiscard]] double index_bits(double density, IndexLaw law);
/// Bytes of a packet with the ceil(p L) selected of L elements: (4 + b(p)/8) each.
[[nodiscard]] double packet_bytes(double density, double elements, IndexLaw law);

/// Bytes that one host's port sends for a gradient of d elements of f32, N = m n, P(L) the packet of L elements:
///
///   ring, dense                  2 (N-1)/N 4d        one edge of the ring leaves a host
///   torus_2d, dense              2 (m-1)/m 4d        n columns with d/n each
///   another algorithm, dense                         of the host whose ranks' plans send most to other hosts
///   top-k, all-gather by a ring  (N-1) P(d)          NaiveAG
///   top-k, hierarchical          n (m-1) P(d/n)      HiTopKComm
///
/// CommLib paper, equations 3 and 9, with the indices that these leave out. With `coded` indices the dense all-reduce
/// takes the place of a top-k that would send more, as the library does it.
[[nodiscard]] double port_bytes(const ExchangeSubject& subject, const ExchangePlace& place, IndexLaw law);

/// The density above which top-k sends more than the dense all-reduce among as many ranks: p (4 + b(p)/8) = 8 / parts.
/// With pairs 1/parts. `parts` is m (hierarchical against the torus) or N (NaiveAG against the ring).
[[nodiscard]] double break_even(int parts, IndexLaw law);

}  // namespace syncopate::tools::bench
