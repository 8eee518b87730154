// Codec: an entry of the shelf codec/. It encodes gradients in fewer bytes and decodes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/shelf/parameters.hpp"
#include "compress/feedback.hpp"
#include "compress/round.hpp"

namespace syncopate::compress {

struct Settings;

/// Which feedback (feedback.hpp) can be used with a codec.
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

struct Codec {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  CombineSet combines;           ///< how its rounds combine payloads
  std::string_view parameter{};  ///< default of PARAMETER in `name:PARAMETER`; empty: no parameter
  std::span<const base::shelf::Parameter> parameters{};  ///< numbers in it, separated by commas
  bool decodes_alone = true;  ///< Coder::add: a rank's packet can be decoded without another round
  bool one_round = true;      ///< the conversation ends with the first answer
  FeedbackUse feedback = FeedbackUse::pointless;
  bool wants_weights = false;  ///< its coder reads Tensor::weights
  bool has_density = false;    ///< its first parameter is a density
  bool warms_up = false;       ///< its density can fall from that of a warm-up
  /// Whether its density depends on the gradients, because its threshold is fixed. Null: no.
  bool (*has_open_density)(const Settings& settings) = nullptr;
  bool (*takes)(DType dtype);  ///< whether its coder takes gradients of this type without conversion; see coding_type
  /// Upper bound of the bytes of these tensors' payload in any round.
  std::size_t (*wire_bytes)(const Settings& settings, std::span<const Tensor> tensors);
  std::unique_ptr<Coder> (*coder)(const Settings& settings);
  /// Expected bytes of a rank's payload for these tensors, by round. Null: `wire_bytes`, in a scatter and a gather
  /// round if `combines` has scatter, else in one round.
  std::vector<RoundBytes> (*rounds)(const Settings& settings, std::span<const Tensor> tensors) = nullptr;
  /// Bytes of the codec's own state (without feedback's) for a tensor between steps; a multiple of 4. `ranks`: number
  /// of ranks that are averaged. Null: no state.
  std::size_t (*kept_bytes)(const Settings& settings, const Tensor& tensor, int ranks) = nullptr;
  /// Whether a gradient, given with all its rows, can be coded; otherwise it is sent uncoded. Null: every gradient.
  bool (*codes)(const Settings& settings, const Tensor& whole) = nullptr;
};

/// For Codec::takes.
[[nodiscard]] constexpr bool takes_f32(DType dtype) { return dtype == DType::f32; }

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
  /// A name without a parameter gives the same text as the name with its default parameter.
  [[nodiscard]] std::string text() const;
  /// State between steps is kept while this text is equal: the codec's name, the kind of feedback, and which gradients
  /// are coded.
  [[nodiscard]] std::string owner() const;
};

/// Every codec, by name (generated from the folder codec/).
[[nodiscard]] std::span<const Codec* const> codecs();
/// Parses `name` or `name:parameter`. Throws Misuse for an unknown codec, a parameter that is not allowed, or a
/// parameter of a codec that takes none.
[[nodiscard]] Settings settings_of(std::string_view text);
/// Whether a gradient, given with all its rows, is coded; otherwise it is sent uncoded.
[[nodiscard]] bool is_coded(const Settings& settings, const Tensor& whole);
/// Bytes of a tensor's state between steps: the codec's own, then feedback's. `coded`: as is_coded returns it.
[[nodiscard]] std::size_t state_bytes(const Settings& settings, const Tensor& tensor, bool coded, int ranks);
/// The coder of coded or of uncoded gradients. The coder of uncoded gradients sends them unchanged and, with momentum
/// correction, returns their momentum, because the optimizer then adds none.
[[nodiscard]] std::unique_ptr<Coder> coder_of(const Settings& settings, bool coded);
[[nodiscard]] std::size_t wire_bytes_of(const Settings& settings, std::span<const Tensor> tensors, bool coded);
/// Expected bytes of the rounds for these tensors. Their values may be null.
[[nodiscard]] std::vector<RoundBytes> rounds_of(const Settings& settings, std::span<const Tensor> tensors);
/// The type in which the coder receives gradients of this type: f32 for f16 and bf16 if the codec does not take them,
/// and for uncoded gradients with momentum; otherwise `dtype`.
[[nodiscard]] DType coding_type(const Settings& settings, DType dtype, bool coded);
/// Throws Misuse if the codec takes gradients of this type neither directly nor converted to f32.
void require_taken(const Settings& settings, std::string_view gradient, DType dtype);

}  // namespace syncopate::compress
