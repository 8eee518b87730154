// A decoder-only transformer that predicts the next byte (Vaswani et al. 2017; normalisation first, learned positions).
#include <fmt/format.h>

#include <cmath>

#include "model.hpp"
#include "network/network.hpp"
#include "require.hpp"

namespace syncopate::train::model {
namespace {

// x += out(attention(norm1(x)));  x += down(gelu(up(norm2(x))))
struct Block {
  LayerNorm norm1;
  Linear qkv, out;
  LayerNorm norm2;
  Linear up, down;
  int heads = 1;

  [[nodiscard]] at::Tensor attend(const at::Tensor& x) const {
    const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const auto parts = qkv(x).view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    return out(mixed.transpose(1, 2).reshape({batch, length, width}));
  }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor attended = x + attend(norm1(x));
    return attended + down(at::gelu(up(norm2(attended))));
  }
};

Block build_block(Builder& builder, const std::string& name, const ModelOptions& options) {
  const double residual_gain = 1 / std::sqrt(2.0 * options.layers);  // keeps the sum of all branches at unit size
  Block block;
  block.heads = options.heads;
  block.norm1 = builder.layer_norm(name + "norm1", options.width);
  block.qkv = builder.linear(name + "qkv", options.width, 3 * options.width);
  block.out = builder.linear(name + "out", options.width, options.width, residual_gain);
  block.norm2 = builder.layer_norm(name + "norm2", options.width);
  block.up = builder.linear(name + "up", options.width, 4 * options.width);
  block.down = builder.linear(name + "down", 4 * options.width, options.width, residual_gain);
  return block;
}

Network build(Builder& builder, const ModelOptions& given) {
  ModelOptions options = given;
  if (options.width == 0) options.width = 256;
  require(options.width % options.heads == 0, "--width {} is not a multiple of --heads {}", options.width,
          options.heads);
  const Parameter bytes = builder.table("bytes", 256, options.width, 0.5);
  const Parameter positions = builder.table("positions", options.context, options.width, 0.1);
  std::vector<Block> blocks;
  for (int i = 0; i < options.layers; ++i) blocks.push_back(build_block(builder, fmt::format("block{}.", i), options));
  const LayerNorm norm = builder.layer_norm("norm", options.width);
  const Linear head = builder.linear("head", options.width, 256, 0.5);
  return builder.finish([=](const at::Tensor& tokens, bool) {
    at::Tensor x = at::embedding(bytes(), tokens) + positions().narrow(0, 0, tokens.size(1));
    for (const Block& block : blocks) x = block(x);
    return head(norm(x)).flatten(0, 1);
  });
}

}  // namespace

extern constinit const Model transformer;
const Model transformer{.name = "transformer",
                        .summary = "decoder-only byte language model; size by --layers --width --heads --context",
                        .input = DataKind::text,
                        .learning_rate = 0.2,
                        .warmup = 50,
                        .clip = 1.0,
                        .build = build};

}  // namespace syncopate::train::model
