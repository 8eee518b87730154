// Masking coder: a few ranks propose the elements to send; masks are gathered, then the values are averaged.
#pragma once

#include <functional>
#include <memory>

#include "compress/codec.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

/// The result of a proposer for one tensor.
struct Proposal {
  float threshold = 0;  ///< the one that it used; equal on all proposers, except in the first step
  double spread = 0;    ///< variance over mean of the measure that the threshold applies to; 0: not computed
};

/// Adds the elements of a formed tensor that are to be sent. `threshold`: what `next_threshold` returned in the last
/// step that succeeded; 0 before.
using Propose = std::function<Proposal(const Compensated& tensor, const Tensor& source, const StepInfo& info,
                                       float threshold, Selection& into)>;
/// The threshold of the next step, from that of this step and the share of the elements in the union of all masks.
using NextThreshold = std::function<float(float threshold, double density, const StepInfo& info)>;

struct MaskCoding {
  Propose propose;
  NextThreshold next_threshold;
  int proposers = 1;           ///< ranks that propose, drawn for every tensor and step; all ranks if there are fewer
  std::uint64_t flush_in = 0;  ///< step t also sends the elements of even part t mod `flush_in`; 0: no flush
  Feedback feedback{};
};

/// Two rounds. The first gathers masks; only the proposers send any. The second, an additive round, averages the values
/// of the union of all masks and the flushed part. A rank with elements that are not finite proposes them even if it is
/// not a proposer, so that every rank detects them.
///
/// A proposal, for each tensor with proposed elements: 4 bytes position in the bucket | f32 threshold | indices
/// (packet.hpp). All ranks derive the threshold of the next step from that of the first proposal, so they agree on it.
[[nodiscard]] std::unique_ptr<Coder> masking_coder(MaskCoding coding);
/// For Codec::coder_alone: every rank proposes for itself. A packet has the mask, with the flushed part, and its
/// values; the rank's own threshold follows the density of its own mask.
[[nodiscard]] std::unique_ptr<Coder> own_mask_coder(const MaskCoding& coding);
/// For Codec::wire_bytes: the largest masks of all tensors with all values.
[[nodiscard]] std::size_t masking_bytes(std::span<const Tensor> tensors);
/// For Codec::kept_bytes: the threshold.
[[nodiscard]] std::size_t masking_state_bytes(const Settings& settings, const Tensor& tensor, int ranks);
/// The share of the elements in the union of all masks, without the flushed part.
struct MaskDensity {
  double density = 0;        ///< for tensors whose density is not known
  bool is_measured = false;  ///< use Tensor::density where it is known, which includes the flushed part
};
/// For Codec::rounds.
[[nodiscard]] std::vector<RoundBytes> masking_rounds(const MaskCoding& coding, const MaskDensity& expected,
                                                     std::span<const Tensor> tensors);

}  // namespace syncopate::compress::sparse
