// Scattering coder: scatters quantised parts; owners sum and encode their parts again, and the averages are gathered.
#pragma once

#include "compress/codec.hpp"
#include "compress/quantised/levels.hpp"

namespace syncopate::compress::quantised {

struct Coding {
  std::unique_ptr<Quantiser> packets;   ///< Q: encodes a rank's gradient
  std::unique_ptr<Quantiser> averages;  ///< P: encodes the owner's averages; same groups and bytes as `packets`
  Feedback feedback{};
};

/// Two rounds. Scatter: each rank receives its part of every tensor (part_of) from every rank and sums in rank order:
/// a = fl((d_0 + d_1 + ... + d_{N-1}) / N), where d_r is the decoded packet of rank r. Gather: every rank receives the
/// encoded averages of all parts and decodes them, the owner too, so all ranks have the same bits.
///
///   rank       v = g + r;  q = Q(v);      r' = v - decoded(q)
///   owner      w = a + s;  p = P(w);      s' = w - decoded(p)      only with feedback: 1-bit SGD's double compression
///
/// The residual s of an owned part is the rank's state between steps (kept_bytes). Without feedback, both stages must
/// be unbiased: they draw random numbers from the tensor's key, the step and the rank; an owner uses N as its rank.
[[nodiscard]] std::unique_ptr<Coder> scattering_coder(Coding coding);

/// For Codec::wire_bytes: exact for the first round; in the second round, a rank sends only its part of these bytes.
[[nodiscard]] std::size_t scattering_bytes(const Quantiser& quantiser, std::span<const Tensor> tensors);
/// For Codec::kept_bytes: one float for each element of the largest part.
[[nodiscard]] std::size_t owner_bytes(const Quantiser& quantiser, const Feedback& feedback, const Tensor& tensor,
                                      int ranks);

/// Completes an entry of the shelf whose packets and averages have the same quantiser.
template <std::unique_ptr<Quantiser> (*quantiser)(const Settings& settings)>
[[nodiscard]] constexpr Codec scattering_codec(Codec own) {
  own.combines = {.gather = true, .scatter = true};
  own.one_round = false;
  own.takes = takes_f32;
  own.wire_bytes = [](const Settings& settings, std::span<const Tensor> tensors) {
    return scattering_bytes(*quantiser(settings), tensors);
  };
  own.coder = [](const Settings& settings) {
    return scattering_coder({quantiser(settings), quantiser(settings), settings.feedback});
  };
  own.kept_bytes = [](const Settings& settings, const Tensor& tensor, int ranks) {
    return owner_bytes(*quantiser(settings), settings.feedback, tensor, ranks);
  };
  return own;
}

}  // namespace syncopate::compress::quantised
