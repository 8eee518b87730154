// Scattering coder: scatters quantised parts; owners sum and encode their parts again, and the averages are gathered.
#pragma once

#include "compress/codec.hpp"
#include "compress/quantised/levels.hpp"

namespace syncopate::compress::quantised {

struct Coding {
  std::unique_ptr<Quantiser> packets;   ///< Q: encodes a rank's gradient
  std::unique_ptr<Quantiser> averages;  ///< P: encodes the owner's averages; same groups as `packets`
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

/// For Codec::wire_bytes: room for all packets of a rank and, behind them, the averages of its part.
[[nodiscard]] std::size_t scattering_bytes(const Coding& coding, std::span<const Tensor> tensors);
/// For Codec::rounds: exact. All gathered parts together count as one payload.
[[nodiscard]] std::vector<RoundBytes> scattering_rounds(const Coding& coding, std::span<const Tensor> tensors);
/// For Codec::kept_bytes: one float for each element of the largest part.
[[nodiscard]] std::size_t owner_bytes(const Quantiser& quantiser, const Feedback& feedback, const Tensor& tensor,
                                      int ranks);

/// Completes an entry of the shelf.
template <Coding (*coding)(const Settings& settings)>
[[nodiscard]] constexpr Codec scattering_codec(Codec own) {
  own.combines = {.gather = true, .scatter = true};
  own.one_round = false;
  own.takes = takes_f32;
  own.wire_bytes = [](const Settings& settings, std::span<const Tensor> tensors) {
    return scattering_bytes(coding(settings), tensors);
  };
  own.rounds = [](const Settings& settings, std::span<const Tensor> tensors) {
    return scattering_rounds(coding(settings), tensors);
  };
  own.coder = [](const Settings& settings) { return scattering_coder(coding(settings)); };
  own.kept_bytes = [](const Settings& settings, const Tensor& tensor, int ranks) {
    return owner_bytes(*coding(settings).packets, settings.feedback, tensor, ranks);
  };
  return own;
}

}  // namespace syncopate::compress::quantised
