// Transformer (base) of machine translation, 256 tokens a side, and BERT (base), 128 tokens.
#include "network/architecture.hpp"

namespace syncopate::network {
namespace {

constexpr std::uint64_t kWidth = 512, kInner = 2048, kTokens = 256, kWords = 37000;

void attention(TensorTable& table, const std::string& name) {
  for (const char* part : {".q", ".k", ".v"}) table.linear(name + part, {kWidth, kWidth, false, kTokens});
  const double scores = 4.0 * kTokens * kTokens * kWidth;  // queries with keys, weights with values
  table.linear(name + ".o", {kWidth, kWidth, false, kTokens, scores});
}

void feed_forward(TensorTable& table, const std::string& name) {
  table.linear(name + ".ff1", {kWidth, kInner, true, kTokens});
  table.linear(name + ".ff2", {kInner, kWidth, true, kTokens});
}

std::vector<Tensor> transformer_tensors() {
  TensorTable table;
  const double tied = 2.0 * kWidth * kWords * kTokens;  // the output layer multiplies by the embedding
  table.embed("embed", kWords, kWidth, 2.0 * kWidth * kTokens + tied);
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = "enc" + std::to_string(layer);
    attention(table, name + ".self");
    table.layer_norm(name + ".ln1", kWidth, kTokens);
    feed_forward(table, name);
    table.layer_norm(name + ".ln2", kWidth, kTokens);
  }
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = "dec" + std::to_string(layer);
    attention(table, name + ".self");
    table.layer_norm(name + ".ln1", kWidth, kTokens);
    attention(table, name + ".cross");
    table.layer_norm(name + ".ln2", kWidth, kTokens);
    feed_forward(table, name);
    table.layer_norm(name + ".ln3", kWidth, kTokens);
  }
  return std::move(table).tensors();
}

std::vector<Tensor> bert_tensors() {
  constexpr std::uint64_t kHidden = 768, kFeedForward = 3072, kLength = 128;
  TensorTable table;
  const double lookup = kHidden * kLength;
  table.embed("emb.word", 30522, kHidden, lookup);
  table.embed("emb.pos", 512, kHidden, lookup);
  table.embed("emb.type", 2, kHidden, lookup);
  table.layer_norm("emb.ln", kHidden, kLength);
  const double scores = 4.0 * kLength * kLength * kHidden;  // queries with keys, weights with values
  for (int layer = 0; layer < 12; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    for (const char* part : {".att.q", ".att.k", ".att.v"})
      table.linear(name + part, {kHidden, kHidden, true, kLength});
    table.linear(name + ".att.o", {kHidden, kHidden, true, kLength, scores});
    table.layer_norm(name + ".att.ln", kHidden, kLength);
    table.linear(name + ".ff1", {kHidden, kFeedForward, true, kLength});
    table.linear(name + ".ff2", {kFeedForward, kHidden, true, kLength});
    table.layer_norm(name + ".ln", kHidden, kLength);
  }
  table.linear("pooler", {kHidden, kHidden});
  return std::move(table).tensors();
}

}  // namespace

extern constinit const Architecture transformer_base{
    .name = "transformer_base",
    .summary = "Transformer base, 37 000 shared words: 63 045 632 parameters",
    .source = "Vaswani et al., NIPS 2017",
    .tensors = transformer_tensors,
};

extern constinit const Architecture bert_base{
    .name = "bert_base",
    .summary = "BERT base with pooler: 109 482 240 parameters",
    .source = "Devlin et al., NAACL 2019",
    .tensors = bert_tensors,
};

}  // namespace syncopate::network
