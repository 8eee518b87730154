// Codec: an entry of the shelf codec/: how gradients become fewer bytes and are restored.
#pragma once

#include <string>
#include <string_view>

#include "compress/round.hpp"

namespace syncopate::compress {

struct Settings;

/// Whether error feedback can be used with a codec: what a packet leaves out (the residual) is added to the next
/// gradient.
enum class Feedback : std::uint8_t {
  pointless,  ///< a packet leaves out nothing but rounding
  sound,      ///< contractive: residuals stay bounded
  unsound,    ///< unbiased but not contractive: residuals may grow without bound
};

struct Codec {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  CombineSet combines;           ///< the ways of combining that its rounds use
  std::string_view parameter{};  ///< default of PARAMETER in `name:PARAMETER`; empty: it takes no parameter
  bool decodes_alone = true;     ///< a rank's packet can be decoded without another round
  bool one_round = true;         ///< the conversation ends with the first answer
  Feedback feedback = Feedback::pointless;
  bool wants_weights = false;  ///< it needs Tensor::weights
  bool (*takes)(DType dtype);  ///< whether it accepts gradients of this type
                               /// Upper limit of the bytes of these tensors' payloads in any round.
  std::size_t (*wire_bytes)(const Settings& settings, std::span<const Tensor> tensors);
  std::unique_ptr<Coder> (*coder)(const Settings& settings);
  /// Bytes of state per tensor between steps; null: none.
  std::size_t (*kept_bytes)(const Settings& settings, const Tensor& tensor) = nullptr;
  /// Whether a tensor is coded; if not, it is sent uncoded (small tensors). Null: every tensor is coded.
  bool (*codes)(const Settings& settings, const Tensor& tensor) = nullptr;
};

/// A codec with its parameter: "topk:0.01".
struct Settings {
  const Codec* codec = nullptr;
  std::string parameter;
  [[nodiscard]] std::string text() const;  ///< equal for a bare name and for its default parameter written out
};

/// Every codec, by name (generated from the folder codec/).
[[nodiscard]] std::span<const Codec* const> codecs();
/// Parses `name` or `name:parameter`. Throws Misuse that lists the codecs, or names a codec without a parameter.
[[nodiscard]] Settings settings_of(std::string_view text);
/// Throws Misuse if the codec does not take gradients of that type.
void require_taken(const Settings& settings, std::string_view gradient, DType dtype);

}  // namespace syncopate::compress
