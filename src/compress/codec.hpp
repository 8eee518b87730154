// Codec: an entry of the shelf codec/: how gradients become fewer bytes and are restored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compress/feedback.hpp"
#include "compress/round.hpp"

namespace syncopate::compress {

struct Settings;

/// Which feedback (feedback.hpp) can be used with a codec.
enum class FeedbackUse : std::uint8_t {
  pointless,  ///< none: a packet leaves out nothing but rounding
  unsound,    ///< none: unbiased but not contractive, so that residuals may grow without bound
  sound,      ///< residual: contractive, residuals stay bounded
  maskable,   ///< residual and momentum: a packet also says which elements it has
};

/// What a round is expected to take.
struct RoundBytes {
  Combine combine = Combine::additive;
  double bytes = 0;  ///< of one rank's payload
  int senders = 0;   ///< gather: ranks that have one; 0: all
};

struct Codec {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  CombineSet combines;           ///< the ways of combining that its rounds use
  std::string_view parameter{};  ///< default of PARAMETER in `name:PARAMETER`; empty: it takes no parameter
  bool decodes_alone = true;     ///< Coder::add: a rank's packet can be decoded without another round
  bool one_round = true;         ///< the conversation ends with the first answer
  FeedbackUse feedback = FeedbackUse::pointless;
  bool wants_weights = false;  ///< it needs Tensor::weights
  bool has_density = false;    ///< its first parameter is one, which a warm-up may begin with
  bool (*takes)(DType dtype);  ///< whether its coder gets gradients of this type as they are; see coding_type
  /// Upper limit of the bytes of these tensors' payloads in any round.
  std::size_t (*wire_bytes)(const Settings& settings, std::span<const Tensor> tensors);
  std::unique_ptr<Coder> (*coder)(const Settings& settings);
  /// The payloads that a rank makes of these tensors, round by round, as bytes that are expected; null: of
  /// `wire_bytes`, scattered and gathered again in parts where `combines` has scatter, else in one round.
  std::vector<RoundBytes> (*rounds)(const Settings& settings, std::span<const Tensor> tensors) = nullptr;
  /// Bytes of the codec's own state per tensor between steps, a multiple of 4, beside feedback's, where the average is
  /// over so many ranks; null: none.
  std::size_t (*kept_bytes)(const Settings& settings, const Tensor& tensor, int ranks) = nullptr;
  /// Whether a gradient, with all its rows, can be coded; if not, it is sent uncoded. Null: every gradient.
  bool (*codes)(const Settings& settings, const Tensor& whole) = nullptr;
  /// Throws Misuse for a parameter that is not allowed. Null where there is none.
  void (*check)(const Settings& settings) = nullptr;
};

/// A density that falls from `density` to the codec's own during the first `steps` steps, by equal ratios.
struct Warmup {
  double density = 0;
  std::uint64_t steps = 0;
  friend bool operator==(const Warmup&, const Warmup&) = default;
};

/// A codec with its parameter ("topk:0.01") and what else decides its packets.
struct Settings {
  const Codec* codec = nullptr;
  std::string parameter;
  Feedback feedback{};
  Warmup warmup{};
  /// Gradients of fewer elements are sent uncoded, unless the codec leaves out nothing but rounding.
  std::size_t dense_below = 0;
  /// Equal for a bare name and for its default parameter written out.
  [[nodiscard]] std::string text() const;
};

/// Every codec, by name (generated from the folder codec/).
[[nodiscard]] std::span<const Codec* const> codecs();
/// Parses `name` or `name:parameter`. Throws Misuse that lists the codecs, or names a codec without a parameter.
[[nodiscard]] Settings settings_of(std::string_view text);
/// Whether a gradient, with all its rows, is coded; else it is sent as it is.
[[nodiscard]] bool is_coded(const Settings& settings, const Tensor& whole);
/// Bytes of state between steps for a tensor of a gradient that is coded or not: the codec's own, then feedback's.
[[nodiscard]] std::size_t state_bytes(const Settings& settings, const Tensor& tensor, bool coded, int ranks);
/// The coder of gradients that are coded, or of those that are not: it sends them as they are and, under momentum
/// correction, returns their momentum, which no optimizer adds any more.
[[nodiscard]] std::unique_ptr<Coder> coder_of(const Settings& settings, bool coded);
[[nodiscard]] std::size_t wire_bytes_of(const Settings& settings, std::span<const Tensor> tensors, bool coded);
/// What the rounds of these tensors are expected to take. Their values may be null.
[[nodiscard]] std::vector<RoundBytes> rounds_of(const Settings& settings, std::span<const Tensor> tensors);
/// The type in which the coder gets gradients of this type: f32 for f16 and bf16 if the codec does not take these, and
/// for gradients that are not coded but have momentum; else their own.
[[nodiscard]] DType coding_type(const Settings& settings, DType dtype, bool coded);
/// Throws Misuse if the codec does not take gradients of that type, nor their elements in f32.
void require_taken(const Settings& settings, std::string_view gradient, DType dtype);

}  // namespace syncopate::compress
