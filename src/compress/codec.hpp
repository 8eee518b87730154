// Codecs by name, and the conversation that settings and tensors determine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/shelf/parameters.hpp"
#include "syncopate/catalogue.hpp"
#include "syncopate/codec.hpp"
#include "syncopate/codec_feedback.hpp"

namespace syncopate::compress {

[[nodiscard]] std::string text_of(const Feedback& feedback);  ///< "residual"; "momentum 0.9 nesterov, clipped to 1"
/// A name without a parameter gives the same text as the name with its default parameter.
[[nodiscard]] std::string text_of(const Settings& settings);
/// State between steps is kept while this text is equal: the codec's name, the kind of feedback, and which gradients
/// are coded.
[[nodiscard]] std::string owner_of(const Settings& settings);

/// The library's codecs, by name (generated from the folder codec/).
[[nodiscard]] std::span<const Codec* const> codecs();
/// Parses `name` or `name:parameter`. Throws Misuse for an unknown codec, a parameter that is not allowed, or a
/// parameter of a codec that takes none.
[[nodiscard]] Settings settings_of(std::string_view text, const Catalogue& catalogue = {});
/// Whether a server can decode a packet of one worker without those of others.
[[nodiscard]] bool has_packets_alone(const Codec& codec);
/// The coder of such packets: Codec::coder_alone, or Codec::coder.
[[nodiscard]] std::unique_ptr<Coder> packet_coder_of(const Settings& settings);
/// Decodes a packet alone: by Coder::add_selected if the codec selects alike, else by Coder::add. `selected`: of the
/// packet, for codecs that select alike. Throws as the coder's function does.
void add_packet(const Settings& settings, const Coder& coder, base::ConstBytes packet, const Selected& selected,
                std::span<float> into);
/// Whether a gradient, given with all its rows, is coded; otherwise it is sent uncoded.
[[nodiscard]] bool is_coded(const Settings& settings, const Tensor& whole);
/// Bytes of a tensor's state between steps: the codec's own, then feedback's. `coded`: as is_coded returns it.
[[nodiscard]] std::size_t state_bytes(const Settings& settings, const Tensor& tensor, bool coded, int ranks);
/// Whether codec or feedback keep something between steps, on any rank.
[[nodiscard]] bool has_state(const Settings& settings);
/// After the last round: whether the tensor's average, and what feedback keeps for the next step, are finite. A codec's
/// own state is finite if they are. One read of both.
[[nodiscard]] bool is_finite(const Settings& settings, const Tensor& tensor, bool coded);
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
