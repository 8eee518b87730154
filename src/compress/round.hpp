// Round: one payload of a codec and the answer of an exchange. The rounds of a bucket are a conversation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::compress {

/// How the payloads of all ranks become answers.
enum class Combine : std::uint8_t {
  additive,   ///< the payload is averaged over the ranks, element by element, in place; one answer
  gather,     ///< every rank receives every rank's payload; one answer per rank, in rank order
  scatter,    ///< rank r receives part r of every payload, one answer per rank. It decodes, sums, encodes and gathers
              ///< in the next round: 2 (N - 1)/N of the payload pass a port, instead of N - 1 with gather
  mergeable,  ///< payloads are merged pairwise along a tree by the codec's Merger; one answer, the merged payload
};

/// The ways of combining that a codec's rounds use or that an exchange offers.
struct CombineSet {
  bool additive = false, gather = false, scatter = false, mergeable = false;
  [[nodiscard]] constexpr bool includes(const CombineSet& other) const noexcept {
    return (additive || !other.additive) && (gather || !other.gather) && (scatter || !other.scatter) &&
           (mergeable || !other.mergeable);
  }
};

/// The elements that a coder selected from a tensor, in all steps.
struct SelectionReport {
  std::uint64_t sent = 0, elements = 0;  ///< sums over the steps; sent / elements is the density
  double threshold = 0;                  ///< of the last step, if the codec has one
  double spread = 0;                     ///< variance over mean of the importance when this rank last proposed a mask

  void add(std::size_t selected, std::size_t of) noexcept {
    sent += selected;
    elements += of;
  }
};

/// A gradient, or this rank's rows of it.
struct Tensor {
  Buffer values;       ///< the gradient; after the last round, its average
  Buffer weights{};    ///< as many elements; empty unless Codec::wants_weights
  base::Bytes kept{};  ///< `next` of the last step that succeeded; zero at first
  base::Bytes next{};  ///< state for the next step, as long as `kept`; becomes `kept` if this step succeeds
  std::size_t rows = 0, columns = 1;  ///< values.count = rows * columns
  std::uint64_t key = 0;              ///< of the gradient, for counter-based random numbers
  double density = 0;                 ///< for Codec::rounds: the expected share of sent elements, if that is known
  SelectionReport* report = nullptr;  ///< coders that select elements add what they sent; null: not wanted
};

[[nodiscard]] inline std::size_t elements_of(std::span<const Tensor> tensors) noexcept {
  std::size_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.values.count;
  return elements;
}

/// The step of a conversation and its ranks. The average is over `ranks`.
struct StepInfo {
  std::uint64_t step = 0;
  int rank = 0, ranks = 1;
};

/// The codec's side of a mergeable round.
class Merger {
 public:
  virtual ~Merger() = default;
  /// Merges another rank's payload into this rank's payload and returns the result, which replaces this rank's payload
  /// and is valid until the next call. This rank keeps what the merge drops. Throws Corrupt for an invalid payload.
  [[nodiscard]] virtual Buffer merge(base::ConstBytes payload) = 0;
};

struct Round {
  Combine combine = Combine::additive;
  Buffer payload;  ///< owned by the coder; unchanged until `next` (additive: combined in place)
  /// gather: the length of every rank's payload if all ranks know it; empty: lengths are gathered first.
  /// scatter: the length of each part of the payload, by destination rank; the same on all ranks unless `own_lengths`.
  std::span<const std::size_t> lengths{};
  /// gather: bytes of the additive round that the coder starts next if this round is declined; equal on all ranks. 0:
  /// this round must not be declined.
  std::size_t dense_bytes = 0;
  Merger* merger = nullptr;  ///< mergeable; the coder owns it
  std::size_t most_bytes =
      0;  ///< mergeable, own_lengths: upper bound of any rank's payload, merged or not; equal on all ranks
  bool own_lengths = false;     ///< scatter: ranks do not know each other's lengths; they are sent first
  bool ends = false;            ///< this is the last round, unless it is declined
  std::size_t index_bytes = 0;  ///< bytes of the payload that encode indices; for reports only
};

/// The result of a round, valid until the next round. A coder checks the bytes of other ranks before it uses them.
/// Without packets: only other ranks receive the result.
struct Answer {
  std::span<const base::ConstBytes> packets{};
  bool declined = false;  ///< on every rank: a dense round takes fewer bytes; the coder starts it instead
};

/// A codec's rounds for the gradients of one bucket that are coded alike. The coder keeps no state between steps: the
/// state belongs to the gradients (`Tensor::next`), so it survives a change of the partition.
class Coder {
 public:
  virtual ~Coder() = default;
  /// Returns the first round for these tensors. `wire` has Codec::wire_bytes bytes and holds the payloads.
  [[nodiscard]] virtual Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) = 0;
  /// Returns the next round; nullopt when the values hold the average. Throws Corrupt for an invalid answer.
  [[nodiscard]] virtual std::optional<Round> next(Answer answer) = 0;
  /// Decodes a packet outside a conversation and adds its values to `into`, the elements of one tensor. The packet is
  /// the payload of `begin` for only that tensor and one rank (`StepInfo::ranks` = 1). Throws Corrupt for other bytes
  /// (`into` is then undefined), and Misuse if packets cannot be decoded alone (Codec::decodes_alone).
  virtual void add(base::ConstBytes packet, std::span<float> into) const;
};

}  // namespace syncopate::compress
