// The coder of quantising codecs: parts are scattered, added up by their owners, encoded again, and gathered.
#pragma once

#include "compress/codec.hpp"
#include "compress/quantised/quantiser.hpp"

namespace syncopate::compress::quantised {

struct Coding {
  std::unique_ptr<Quantiser> packets;   ///< Q, of what a rank sends
  std::unique_ptr<Quantiser> averages;  ///< P, of what owners send: the same groups and bytes
  Feedback feedback{};
};

/// Two rounds. Scatter: rank r gets its part of every tensor from every rank (part_of), and adds up in the order of the
/// ranks: a = fl((d_0 + d_1 + ... + d_{N-1}) / N), d_r what rank r's packet decodes to. Gather: every rank gets the
/// encoded averages of all parts, and ends with what they decode to: the same bits everywhere, for the owner too.
///
///   rank       v = g + r;  q = Q(v);      r' = v - decoded(q)
///   owner      w = a + s;  p = P(w);      s' = w - decoded(p)      only with feedback: 1-bit SGD's double compression
///
/// The residual s of what a rank owns is its own state between steps (kept_bytes). Without feedback both stages have to
/// be unbiased by chance: they draw by the tensor's key, the step, and the rank; the owner as if it were rank N.
[[nodiscard]] std::unique_ptr<Coder> scattering_coder(Coding coding);

/// For Codec::wire_bytes: exact, in the first round; the second takes a rank's part of it.
[[nodiscard]] std::size_t scattering_bytes(const Quantiser& quantiser, std::span<const Tensor> tensors);
/// For Codec::kept_bytes: a float for every element of the largest part.
[[nodiscard]] std::size_t owner_bytes(const Quantiser& quantiser, const Feedback& feedback, const Tensor& tensor,
                                      int ranks);

}  // namespace syncopate::compress::quantised
