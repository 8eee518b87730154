// Round: one step of a codec's conversation with an exchange: what is to be combined, how, and what comes back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::compress {

/// How the payloads of several ranks become answers.
enum class Combine : std::uint8_t {
  additive,   ///< the payload becomes the average over the ranks, element by element, where it lies; one answer
  gather,     ///< every rank gets every rank's payload; one answer per rank, in the order of the ranks
  scatter,    ///< part r of every payload goes to rank r, which gets one answer per rank; it decodes, sums, encodes
              ///< again and gathers in the next round: 2 (N - 1)/N of the payload travel, where a gather takes N - 1
  mergeable,  ///< pairwise, by a merge of the codec's own
};

/// Several ways of combining: those that a codec's rounds use, or that an exchange serves.
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

/// When and among how many a conversation takes place. The average is over `ranks`.
struct Moment {
  std::uint64_t step = 0;
  int rank = 0, ranks = 1;
};

struct Round {
  Combine combine = Combine::additive;
  Buffer payload;  ///< stays the coder's: unchanged (additive: combined in place) until `next`
  /// gather: bytes of every rank's payload, if all ranks know them (else empty, and lengths travel ahead).
  /// scatter: bytes of the parts of the payload, by the rank each is for; the same on all ranks.
  std::span<const std::size_t> lengths{};
};

/// What a round brought, valid until the next round. Bytes of other ranks are checked before they are used.
/// Empty: the others have the payload, and nothing comes back to this rank.
using Answer = std::span<const base::ConstBytes>;

/// A codec at work on gradients of one bucket that are coded alike. It keeps nothing between steps but memory: what the
/// next step needs is the gradients' (`Tensor::next`), so that it survives any other partition.
class Coder {
 public:
  virtual ~Coder() = default;
  /// The first round for these tensors. `wire` has Codec::wire_bytes, for payloads.
  [[nodiscard]] virtual Round begin(std::span<const Tensor> tensors, const Moment& moment, base::Bytes wire) = 0;
  /// The next round; nothing: the values are the average. Throws Corrupt for an answer that no coder sends.
  [[nodiscard]] virtual std::optional<Round> next(Answer answer) = 0;
};

}  // namespace syncopate::compress
