// Codec: one entry of the shelf codec/: how gradients become fewer bytes and come back.
#pragma once

#include <string>
#include <string_view>

#include "compress/round.hpp"

namespace syncopate::compress {

struct Settings;

/// Whether a residual (what a packet leaves out is added to the next gradient) may be kept with a codec.
enum class Feedback : std::uint8_t {
  pointless,  ///< nothing is left out but rounding
  sound,      ///< contractive: residuals stay bounded
  unsound,    ///< unbiased, not contractive: residuals may grow without bound
};

struct Codec {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  CombineSet combines;           ///< of its rounds
  std::string_view parameter{};  ///< what `name` alone means: `name:parameter`; empty: it takes no parameter
  bool decodes_alone = true;     ///< one rank's packet tells that rank's gradient, without another round
  bool one_round = true;         ///< its conversation ends with the first answer
  Feedback feedback = Feedback::pointless;
  bool wants_weights = false;  ///< Tensor::weights
  bool (*takes)(DType dtype);  ///< element types of gradients
  /// Most bytes that payloads of these tensors take in any round.
  std::size_t (*wire_bytes)(const Settings& settings, std::span<const Tensor> tensors);
  std::unique_ptr<Coder> (*coder)(const Settings& settings);
  /// Bytes kept between steps for one tensor; null: none.
  std::size_t (*kept_bytes)(const Settings& settings, const Tensor& tensor) = nullptr;
  /// Whether a tensor is coded, or sent as it is (small ones); null: every one is coded.
  bool (*codes)(const Settings& settings, const Tensor& tensor) = nullptr;
};

/// A codec with its parameter: "topk:0.01".
struct Settings {
  const Codec* codec = nullptr;
  std::string parameter;
  [[nodiscard]] std::string text() const;  ///< the same for a bare name and for its default spelled out
};

/// Every codec, by name (generated from the folder codec/).
[[nodiscard]] std::span<const Codec* const> codecs();
/// `name` or `name:parameter`. Throws Misuse that lists the codecs, or names one that takes no parameter.
[[nodiscard]] Settings settings_of(std::string_view text);
/// Throws Misuse where a gradient has a type that the codec does not take.
void require_taken(const Settings& settings, std::string_view gradient, DType dtype);

}  // namespace syncopate::compress
