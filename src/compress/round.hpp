// Round: one exchange of payloads in the conversation between a codec and an exchange.
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
  additive,   ///< the payload becomes the average over the ranks, element by element, where it lies; one answer
  gather,     ///< every rank gets every rank's payload; one answer per rank, in the order of the ranks
  scatter,    ///< part r of every payload goes to rank r, which gets one answer per rank; it decodes, sums, encodes
              ///< again and gathers in the next round: 2 (N - 1)/N of the payload travel, where a gather takes N - 1
  mergeable,  ///< pairwise along a tree, by a merge of the codec's own (Merger); one answer, what all have become
};

/// A set of ways of combining: those that a codec's rounds use, or those that an exchange offers.
struct CombineSet {
  bool additive = false, gather = false, scatter = false, mergeable = false;
  [[nodiscard]] constexpr bool includes(const CombineSet& other) const noexcept {
    return (additive || !other.additive) && (gather || !other.gather) && (scatter || !other.scatter) &&
           (mergeable || !other.mergeable);
  }
};

/// A gradient, or this rank's rows of it.
struct Tensor {
  Buffer values;       ///< the gradient; its average when the conversation has ended
  Buffer weights{};    ///< as many elements; empty unless the codec asks for them
  base::Bytes kept{};  ///< what the codec left in `next` in the last step that ended well; zero at first
  base::Bytes next{};  ///< as long; what it leaves for the next step. It becomes `kept` when this step has ended well
  std::size_t rows = 0, columns = 1;  ///< values.count = rows * columns
  std::uint64_t key = 0;              ///< of the gradient, for counter-based randomness
};

[[nodiscard]] inline std::size_t elements_of(std::span<const Tensor> tensors) noexcept {
  std::size_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.values.count;
  return elements;
}

/// The step in which a conversation takes place, and among which ranks. The average is over `ranks`.
struct Moment {
  std::uint64_t step = 0;
  int rank = 0, ranks = 1;
};

/// The codec's side of a mergeable round.
class Merger {
 public:
  virtual ~Merger() = default;
  /// Takes another rank's payload into this rank's, and returns what that has become: this rank's payload from now on,
  /// valid until the next call. What the merge drops is kept by this rank. Throws Corrupt for an invalid payload.
  [[nodiscard]] virtual Buffer merge(base::ConstBytes payload) = 0;
};

struct Round {
  Combine combine = Combine::additive;
  Buffer payload;  ///< owned by the coder; unchanged until `next` (additive: combined in place)
  /// gather: the length of every rank's payload if all ranks know them; empty: lengths are gathered first.
  /// scatter: the length of each part of the payload, by destination rank; the same on all ranks unless `own_lengths`.
  std::span<const std::size_t> lengths{};
  /// gather: bytes of the additive round that the coder says next if this one is declined; the same on all ranks. 0:
  /// it must not be declined.
  std::size_t dense_bytes = 0;
  Merger* merger = nullptr;     ///< mergeable; the coder owns it
  std::size_t most_bytes = 0;   ///< mergeable, own_lengths: of a payload of any rank, merged or not; alike on all ranks
  bool own_lengths = false;     ///< scatter: ranks do not know each other's lengths, which travel ahead
  bool ends = false;            ///< the conversation ends with this round's answer, unless it is declined
  std::size_t index_bytes = 0;  ///< of the payload: what is no value but says which elements it has; for reports
};

/// The result of a round, valid until the next round. A coder checks the bytes of other ranks before it uses them.
/// Empty: only other ranks receive the result.
struct Answer : std::span<const base::ConstBytes> {
  using span::span;
  Answer(std::span<const base::ConstBytes> payloads) noexcept
      : span(payloads) {}  // NOLINT(google-explicit-constructor)
  bool declined = false;  ///< on every rank: gathering takes more than a dense round, which the coder is to say instead
};

/// A codec's conversation about gradients of one bucket that are coded alike. The coder keeps no state between steps:
/// the state belongs to the gradients (`Tensor::next`), so that it survives a change of the partition.
class Coder {
 public:
  virtual ~Coder() = default;
  /// Returns the first round for these tensors. `wire` has Codec::wire_bytes bytes, for payloads.
  [[nodiscard]] virtual Round begin(std::span<const Tensor> tensors, const Moment& moment, base::Bytes wire) = 0;
  /// Returns the next round; nullopt when the values hold the average. Throws Corrupt for an invalid answer.
  [[nodiscard]] virtual std::optional<Round> next(Answer answer) = 0;
  /// Outside a conversation: adds to `into`, a tensor's elements, what a packet says that `begin` made of that tensor
  /// alone among one rank (`Moment::ranks` = 1). Throws Corrupt for other bytes, when `into` is undefined; Misuse where
  /// packets cannot be decoded alone (Codec::decodes_alone).
  virtual void add(base::ConstBytes packet, std::span<float> into) const;
};

}  // namespace syncopate::compress
