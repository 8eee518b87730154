// The coder of codecs where a few ranks propose which elements travel: masks are gathered, then the values added up.
#pragma once

#include <functional>
#include <memory>

#include "compress/codec.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

/// Adds the elements of a formed tensor that are to travel.
using Propose =
    std::function<void(const Compensated& tensor, const Tensor& source, const Moment& moment, Selection& into)>;

struct MaskCoding {
  Propose propose;
  int proposers = 1;           ///< ranks that propose, drawn anew for every tensor and step; all, if it has fewer
  std::uint64_t flush_in = 0;  ///< in step t the elements of even part t mod `flush_in` travel too; 0: no flush
  Feedback feedback{};
};

/// Two rounds. A gather round of masks, to which only the proposers have something to say; the union of all masks and
/// the flushed part are what travels. An additive round of these values, so that the average is the all-reduce's.
/// A rank with elements that are not finite proposes them too, so that no rank overlooks them.
///
/// What a rank proposes: for each tensor of which it has any, 4 bytes its place in the bucket | indices (packet.hpp)
[[nodiscard]] std::unique_ptr<Coder> masking_coder(MaskCoding coding);
/// For Codec::wire_bytes: any mask, or all values.
[[nodiscard]] std::size_t masking_bytes(std::span<const Tensor> tensors);
/// For Codec::rounds, where each proposer proposes about this share of the elements.
[[nodiscard]] std::vector<RoundBytes> masking_rounds(const MaskCoding& coding, double density,
                                                     std::span<const Tensor> tensors);

}  // namespace syncopate::compress::sparse
