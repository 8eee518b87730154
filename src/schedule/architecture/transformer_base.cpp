// Transformer (base): six encoder and six decoder layers of width 512, embeddings and output tied; 256 tokens a side.
#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

namespace {

constexpr std::uint64_t kWidth = 512, kInner = 2048, kTokens = 256, kWords = 37000;

void attention(TensorTable& notebook, const std::string& name) {
  for (const char* part : {".q", ".k", ".v"}) notebook.linear(name + part, {kWidth, kWidth, false, kTokens});
  const double scores = 4.0 * kTokens * kTokens * kWidth;  // queries with keys, weights with values
  notebook.linear(name + ".o", {kWidth, kWidth, false, kTokens, scores});
}

void feed_forward(TensorTable& notebook, const std::string& name) {
  notebook.linear(name + ".ff1", {kWidth, kInner, true, kTokens});
  notebook.linear(name + ".ff2", {kInner, kWidth, true, kTokens});
}

std::vector<Tensor> tensors() {
  TensorTable notebook;
  const double tied = 2.0 * kWidth * kWords * kTokens;  // the output layer multiplies by the embedding
  notebook.embed("embed", kWords, kWidth, 2.0 * kWidth * kTokens + tied);
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = "enc" + std::to_string(layer);
    attention(notebook, name + ".self");
    notebook.layer_norm(name + ".ln1", kWidth, kTokens);
    feed_forward(notebook, name);
    notebook.layer_norm(name + ".ln2", kWidth, kTokens);
  }
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = "dec" + std::to_string(layer);
    attention(notebook, name + ".self");
    notebook.layer_norm(name + ".ln1", kWidth, kTokens);
    attention(notebook, name + ".cross");
    notebook.layer_norm(name + ".ln2", kWidth, kTokens);
    feed_forward(notebook, name);
    notebook.layer_norm(name + ".ln3", kWidth, kTokens);
  }
  return std::move(notebook).tensors();
}

}  // namespace

extern constinit const Architecture transformer_base{
    .name = "transformer_base",
    .summary = "Transformer base, 37 000 shared words: 63 045 632 parameters",
    .source = "Vaswani et al., NIPS 2017",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
