// BERT base: twelve encoder layers of width 768, 128 tokens.
#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

namespace {

constexpr std::uint64_t kWidth = 768, kInner = 3072, kTokens = 128;

std::vector<Tensor> tensors() {
  TensorTable notebook;
  const double lookup = kWidth * kTokens;
  notebook.embed("emb.word", 30522, kWidth, lookup);
  notebook.embed("emb.pos", 512, kWidth, lookup);
  notebook.embed("emb.type", 2, kWidth, lookup);
  notebook.layer_norm("emb.ln", kWidth, kTokens);
  const double scores = 4.0 * kTokens * kTokens * kWidth;  // queries with keys, weights with values
  for (int layer = 0; layer < 12; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    for (const char* part : {".att.q", ".att.k", ".att.v"})
      notebook.linear(name + part, {kWidth, kWidth, true, kTokens});
    notebook.linear(name + ".att.o", {kWidth, kWidth, true, kTokens, scores});
    notebook.layer_norm(name + ".att.ln", kWidth, kTokens);
    notebook.linear(name + ".ff1", {kWidth, kInner, true, kTokens});
    notebook.linear(name + ".ff2", {kInner, kWidth, true, kTokens});
    notebook.layer_norm(name + ".ln", kWidth, kTokens);
  }
  notebook.linear("pooler", {kWidth, kWidth});
  return std::move(notebook).tensors();
}

}  // namespace

extern constinit const Architecture bert_base{
    .name = "bert_base",
    .summary = "BERT base with pooler: 109 482 240 parameters",
    .source = "Devlin et al., NAACL 2019",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
