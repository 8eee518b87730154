// Codec: encodes gradients in fewer bytes and decodes them, in a conversation of rounds that an exchange answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/dtype.hpp"
#include "syncopate/parameter.hpp"

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

/// Numbers of elements by a measure: entry k counts those from 2^(k + kFirstOctave) to below twice that, the first also
/// all smaller ones, the last also all larger ones.
using Octaves = std::array<std::uint64_t, 32>;
inline constexpr int kFirstOctave = -16;

/// The elements that a coder selected from a tensor, in all steps.
struct SelectionReport {
  std::uint64_t sent = 0, elements = 0;  ///< sums over the steps; sent / elements is the density
  std::uint64_t proposed = 0;  ///< sum over the steps and all ranks' masks: an element in two masks counts twice
  double threshold = 0;        ///< of the last step, if the codec has one
  double spread = 0;           ///< variance over mean of the importance when this rank last proposed a mask
  Octaves importances{};       ///< of the elements when `spread` was last measured for this report

  void add(std::size_t selected, std::size_t of) noexcept {
    sent += selected;
    elements += of;
  }
};

/// A gradient, or this rank's rows of it.
struct Tensor {
  Buffer values;                ///< the gradient; after the last round, its average
  Buffer weights{};             ///< as many elements; empty unless Codec::wants_weights
  std::span<std::byte> kept{};  ///< `next` of the last step that succeeded; zero at first
  std::span<std::byte> next{};  ///< state for the next step, as long as `kept`; becomes `kept` if this step succeeds
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
  /// The number of the packet, if the rank does not send one in every step: a worker of a parameter server, except in
  /// lockstep.
  std::optional<std::uint64_t> packet{};

  /// The number by which a coder takes its elements in turns.
  [[nodiscard]] std::uint64_t turn() const noexcept { return packet.value_or(step); }
};

/// The codec's side of a mergeable round.
class Merger {
 public:
  virtual ~Merger() = default;
  /// Merges another rank's payload into this rank's payload and returns the result, which replaces this rank's payload
  /// and is valid until the next call. This rank keeps what the merge drops. Throws Corrupt for an invalid payload.
  [[nodiscard]] virtual Buffer merge(std::span<const std::byte> payload) = 0;
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
  std::span<const std::span<const std::byte>> packets{};
  bool declined = false;  ///< on every rank: a dense round takes fewer bytes; the coder starts it instead
};

/// Tensor::key and StepInfo::step, which determine a selection that is equal on all ranks.
struct Selected {
  std::uint64_t key = 0, step = 0;
};

/// Limit of the rounds of a conversation: a codec that never ends would keep all ranks for ever, although each round
/// ends in time.
inline constexpr std::size_t kMostRounds = 1000;

/// A codec's rounds for the gradients of one bucket that are coded alike. The coder keeps no state between steps: the
/// state belongs to the gradients (`Tensor::next`), so it survives a change of the partition.
class Coder {
 public:
  virtual ~Coder() = default;
  /// Returns the first round for these tensors. `wire` has Codec::wire_bytes bytes and holds the payloads.
  [[nodiscard]] virtual Round begin(std::span<const Tensor> tensors, const StepInfo& info,
                                    std::span<std::byte> wire) = 0;
  /// Returns the next round, of at most kMostRounds; nullopt when the values hold the average. Throws Corrupt for an
  /// invalid answer.
  [[nodiscard]] virtual std::optional<Round> next(Answer answer) = 0;
  /// Decodes a packet outside a conversation and adds its values to `into`, the elements of one tensor. The packet is
  /// the payload of `begin` for only that tensor and one rank (`StepInfo::ranks` = 1). Throws Corrupt for other bytes
  /// (`into` is then undefined), and Misuse if packets of this coder cannot be decoded alone (Codec::decodes_alone).
  virtual void add(std::span<const std::byte> packet, std::span<float> into) const;
  /// Adds the f32 values of an additive payload to the elements of one tensor that payloads of this key and step
  /// select. The payload is that of `begin` for only that tensor and one rank, or the sum of such payloads of several
  /// ranks in one step. Throws Corrupt for another length, and Misuse unless Codec::selects_alike.
  virtual void add_selected(std::span<const std::byte> payload, const Selected& selected, std::span<float> into) const;
};

/// The treatment of the elements that a packet leaves out (codec_feedback.hpp).
struct Feedback {
  enum class Kind : std::uint8_t {
    none,      ///< nothing is kept
    residual,  ///< what a packet leaves out is added to the next gradient
    momentum,  ///< momentum correction: momentum is accumulated before the selection instead of in the optimizer
  };
  Kind kind = Kind::none;
  float momentum = 0;     ///< momentum correction: m, in (0, 1)
  bool nesterov = false;  ///< momentum correction: Nesterov's rule
  double clip_norm = 0;   ///< > 0: each gradient is clipped to this L2 norm before it is accumulated

  friend bool operator==(const Feedback&, const Feedback&) = default;
};

struct Settings;

/// Which feedback can be used with a codec.
enum class FeedbackUse : std::uint8_t {
  pointless,  ///< none: the only loss is rounding
  unsound,    ///< none: unbiased but not contractive, so that residuals may grow without bound
  sound,      ///< residual: contractive, residuals stay bounded
  maskable,   ///< residual and momentum: a packet also lists the elements that it contains
};

/// Expected bytes of a round.
struct RoundBytes {
  Combine combine = Combine::additive;
  double bytes = 0;  ///< of one rank's payload
  int senders = 0;   ///< gather: ranks that send a payload; 0: all
};

/// For Codec::takes.
[[nodiscard]] constexpr bool takes_f32(DType dtype) { return dtype == DType::f32; }

/// An entry of a catalogue. Its coders obey three laws: when the conversation ends, the values are the average of what
/// the ranks sent; all ranks then hold the same bits; with feedback, the next residual is what was not sent, bit for
/// bit. `name`, `combines`, `wire_bytes` and `coder` are required.
struct Codec {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  CombineSet combines;                      ///< how its rounds combine payloads
  std::string_view parameter{};             ///< default of PARAMETER in `name:PARAMETER`; empty: no parameter
  std::span<const Parameter> parameters{};  ///< numbers in it, separated by commas
  bool decodes_alone = true;                ///< Coder::add: a rank's packet can be decoded without another round
  std::string_view conversation{};          ///< why not: the end of "its packets cannot be decoded alone, because ..."
  bool selects_alike =
      false;              ///< Coder::add_selected: key and step alone determine the elements of its one, additive round
  bool one_round = true;  ///< the conversation ends with the first answer
  FeedbackUse feedback = FeedbackUse::pointless;
  bool wants_weights = false;  ///< its coder reads Tensor::weights
  bool has_density = false;    ///< its first parameter is a density
  bool warms_up = false;       ///< its density can fall from that of a warm-up
  /// Whether its density depends on the gradients, because its threshold is fixed. Null: no.
  bool (*has_open_density)(const Settings& settings) = nullptr;
  /// The type of its one, additive payload, if it rounds each element of f32 to it, to nearest even, and does nothing
  /// else; the payload of values that have come in this type is a copy of them.
  std::optional<DType> casts_to{};
  /// Whether its coder takes gradients of this type. If it takes f32, it gets f16 and bf16 converted to f32.
  bool (*takes)(DType dtype) = takes_f32;
  /// Upper bound of the bytes of these tensors' payload in any round.
  std::size_t (*wire_bytes)(const Settings& settings, std::span<const Tensor> tensors) = nullptr;
  std::unique_ptr<Coder> (*coder)(const Settings& settings) = nullptr;
  /// Unless `decodes_alone`: a coder whose packets can be, for workers of a parameter server, which share no rounds. It
  /// has one gather round, the same state, and payloads of at most `wire_bytes`. Null: none.
  std::unique_ptr<Coder> (*coder_alone)(const Settings& settings) = nullptr;
  /// Expected bytes of a rank's payload for these tensors, by round; their sum is also that of a packet alone. Null:
  /// `wire_bytes`, in a scatter and a gather round if `combines` has scatter, else in one round.
  std::vector<RoundBytes> (*rounds)(const Settings& settings, std::span<const Tensor> tensors) = nullptr;
  /// Bytes of the codec's own state (without feedback's) for a tensor between steps; a multiple of 4. `ranks`: number
  /// of ranks that are averaged. Null: no state.
  std::size_t (*kept_bytes)(const Settings& settings, const Tensor& tensor, int ranks) = nullptr;
  /// Whether a gradient, given with all its rows, can be coded; otherwise it is sent uncoded. Null: every gradient.
  bool (*codes)(const Settings& settings, const Tensor& whole) = nullptr;
};

/// A density that falls geometrically from `density` to the codec's own during the first `steps` steps.
struct Warmup {
  double density = 0;
  std::uint64_t steps = 0;
  friend bool operator==(const Warmup&, const Warmup&) = default;
};

/// A codec, its parameter ("topk:0.01"), and the other options that determine its packets.
struct Settings {
  const Codec* codec = nullptr;
  std::string parameter;
  std::vector<double> numbers{};  ///< of Codec::parameters, in `parameter` or by default
  Feedback feedback{};
  Warmup warmup{};
  /// Gradients with fewer elements are sent uncoded, unless FeedbackUse is `pointless`.
  std::size_t dense_below = 0;
};

}  // namespace syncopate::compress
