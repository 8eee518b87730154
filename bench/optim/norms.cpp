// Norms of layer-wise optimizers: the time of a rank that sums all blocks, and of one that shares them with others.
#include "optim/norms.hpp"

#include <benchmark/benchmark.h>

#include <vector>

namespace syncopate::optim {
namespace {

/// Elements of the tensors of two models: ResNet-50 (He et al., 2016) and transformer_base (Vaswani et al., 2017).
std::vector<std::size_t> resnet50() {
  std::vector<std::size_t> tensors;
  const auto convolution = [&](std::size_t in, std::size_t out, std::size_t side) {
    tensors.insert(tensors.end(), {in * out * side * side, out, out});
  };
  convolution(3, 64, 7);
  std::size_t in = 64;
  for (const auto& [blocks, width] : {std::pair(3U, 64U), {4U, 128U}, {6U, 256U}, {3U, 512U}})
    for (std::size_t block = 0; block < blocks; ++block) {
      convolution(in, width, 1);
      convolution(width, width, 3);
      convolution(width, 4 * width, 1);
      if (block == 0) convolution(in, 4 * width, 1);
      in = 4 * width;
    }
  tensors.insert(tensors.end(), {2048 * 1000, 1000});
  return tensors;
}

std::vector<std::size_t> transformer_base() {
  constexpr std::size_t kWidth = 512, kInner = 2048, kWords = 37000;
  std::vector<std::size_t> tensors{kWords * kWidth};
  for (int layer = 0; layer < 12; ++layer) {
    for (int attention = 0; attention < (layer < 6 ? 1 : 2); ++attention) {
      tensors.insert(tensors.end(), 4, kWidth * kWidth);
      tensors.insert(tensors.end(), 2, kWidth);
    }
    tensors.insert(tensors.end(), {kWidth * kInner, kInner, kInner * kWidth, kWidth, kWidth, kWidth});
  }
  return tensors;
}

/// The trust ratios of all tensors on rank 0 of `ranks`. Received data are in place: their time is the network's.
void norms(benchmark::State& state, const std::vector<std::size_t>& sizes) {
  const auto ranks = static_cast<int>(state.range(0));
  const SharedUpdate work{.shards = Shards(sizes, ranks), .rank = 0, .gather = [](auto, auto) {}};
  const Rule& rule = rule_named("lars");
  const Hyperparameters with = hyperparameters_of(rule, {});
  std::size_t elements = 0;
  for (const std::size_t size : sizes) elements += size;
  std::vector<float> weights(elements, 0.5F), gradients(elements, 0.25F);
  BlockSquares squares(sizes);
  for (auto _ : state) {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < sizes.size(); offset += sizes[i++]) {
      const TensorSlice tensor{std::span(weights).subspan(offset, sizes[i]),
                               std::span(gradients).subspan(offset, sizes[i])};
      const Range mine = work.shards.of(i, 0);
      for (std::size_t at = mine.begin; at < mine.end; at += kBlock)
        squares.of(i)[at / kBlock] = squares_of(tensor.cut({at, std::min(mine.end, at + kBlock)}));
    }
    if (ranks > 1) gather_squares(work, 0, squares);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      benchmark::DoNotOptimize(trust_of(rule, with, norms_of(squares.of(i))));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(8 * elements / static_cast<std::size_t>(ranks)) *
                          static_cast<std::int64_t>(state.iterations()));
}

BENCHMARK_CAPTURE(norms, resnet50, resnet50())->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(norms, transformer_base, transformer_base())->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncopate::optim
