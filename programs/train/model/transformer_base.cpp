// The base transformer, encoder and decoder (Vaswani et al. 2017, table 3), without dropout: 63,045,632 parameters.
#include <fmt/format.h>

#include <cmath>

#include "model.hpp"
#include "network/network.hpp"
#include "require.hpp"

namespace syncopate::train::model {
namespace {

constexpr int kVocabulary = 37'000, kWidth = 512, kInner = 2048, kHeads = 8, kLayers = 6;

/// Attention without biases. In self-attention `causal` hides the positions to be predicted.
struct Attention {
  Linear query, key, value, out;

  [[nodiscard]] at::Tensor operator()(const at::Tensor& x, const at::Tensor& memory, bool causal) const {
    const auto heads = [](const at::Tensor& t) {
      return t.view({t.size(0), t.size(1), kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const at::Tensor mixed =
        at::scaled_dot_product_attention(heads(query(x)), heads(key(memory)), heads(value(memory)), {}, 0.0, causal);
    return out(mixed.transpose(1, 2).reshape(x.sizes()));
  }
};

struct FeedForward {
  Linear up, down;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const { return down(at::relu(up(x))); }
};

// Normalisation comes last: x = norm(x + part(x)).
struct EncoderLayer {
  Attention self;
  LayerNorm norm1;
  FeedForward inner;
  LayerNorm norm2;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor attended = norm1(x + self(x, x, false));
    return norm2(attended + inner(attended));
  }
};

struct DecoderLayer {
  Attention self;
  LayerNorm norm1;
  Attention cross;
  LayerNorm norm2;
  FeedForward inner;
  LayerNorm norm3;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x, const at::Tensor& memory) const {
    const at::Tensor own = norm1(x + self(x, x, true));
    const at::Tensor attended = norm2(own + cross(own, memory, false));
    return norm3(attended + inner(attended));
  }
};

Attention build_attention(Builder& builder, const std::string& name) {
  const auto part = [&](const char* which) { return builder.projection(name + which, kWidth, kWidth); };
  Attention attention;
  attention.query = part(".q");
  attention.key = part(".k");
  attention.value = part(".v");
  attention.out = part(".o");
  return attention;
}

FeedForward build_inner(Builder& builder, const std::string& name) {
  Linear up = builder.linear(name + ".ff1", kWidth, kInner, kBeforeRelu);
  return {std::move(up), builder.linear(name + ".ff2", kInner, kWidth)};
}

EncoderLayer build_encoder_layer(Builder& builder, const std::string& name) {
  EncoderLayer layer;
  layer.self = build_attention(builder, name + ".self");
  layer.norm1 = builder.layer_norm(name + ".ln1", kWidth);
  layer.inner = build_inner(builder, name);
  layer.norm2 = builder.layer_norm(name + ".ln2", kWidth);
  return layer;
}

DecoderLayer build_decoder_layer(Builder& builder, const std::string& name) {
  DecoderLayer layer;
  layer.self = build_attention(builder, name + ".self");
  layer.norm1 = builder.layer_norm(name + ".ln1", kWidth);
  layer.cross = build_attention(builder, name + ".cross");
  layer.norm2 = builder.layer_norm(name + ".ln2", kWidth);
  layer.inner = build_inner(builder, name);
  layer.norm3 = builder.layer_norm(name + ".ln3", kWidth);
  return layer;
}

/// Section 3.5: sines and cosines of wavelengths from 2π to 10000·2π. [length, width]
at::Tensor positions(std::int64_t length) {
  const at::Tensor frequency = at::exp(at::arange(0, kWidth, 2) * (-std::log(10'000.0) / kWidth));
  const at::Tensor angle = at::arange(length).unsqueeze(1) * frequency;
  return at::stack({at::sin(angle), at::cos(angle)}, 2).flatten(1);
}

/// The encoder reads the first half of a sample, the decoder predicts the second byte by byte.
Network build(Builder& builder, const ModelOptions& options) {
  require(options.context >= 2, "--context {}; allowed with transformer_base: 2 or more, half of it for each side",
          options.context);
  const Parameter table = builder.table("embed", kVocabulary, kWidth, 1 / std::sqrt(kWidth));
  std::vector<EncoderLayer> encoder;
  for (int i = 0; i < kLayers; ++i) encoder.push_back(build_encoder_layer(builder, fmt::format("enc{}", i)));
  std::vector<DecoderLayer> decoder;
  for (int i = 0; i < kLayers; ++i) decoder.push_back(build_decoder_layer(builder, fmt::format("dec{}", i)));
  const auto embedded = [table](const at::Tensor& tokens) {
    return at::embedding(table(), tokens) * std::sqrt(kWidth) + positions(tokens.size(1));
  };
  return builder.finish_with([=](const at::Tensor& tokens, const at::Tensor& target, bool) {
    const std::int64_t half = tokens.size(1) / 2;
    at::Tensor memory = embedded(tokens.slice(1, 0, half));
    for (const EncoderLayer& layer : encoder) memory = layer(memory);
    at::Tensor x = embedded(tokens.slice(1, half));
    for (const DecoderLayer& layer : decoder) x = layer(x, memory);
    const at::Tensor wanted = target.view(tokens.sizes()).slice(1, half).flatten();
    return std::vector<Answer>{{at::linear(x, table()).flatten(0, 1), wanted}};
  });
}

}  // namespace

extern constinit const Model transformer_base;
const Model transformer_base{
    .name = "transformer_base",
    .summary = "base transformer, encoder and decoder, 63,045,632 parameters; each takes half of --context",
    .input = DataKind::text,
    .learning_rate = 0.05,
    .warmup = 200,
    .clip = 1.0,
    .build = build};

}  // namespace syncopate::train::model
