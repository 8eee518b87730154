// GoogLeNet: nine modules of four parallel branches, and two classifiers of inner modules.
#include "network/googlenet.hpp"

#include <fmt/format.h>

#include "network/response_norm.hpp"

namespace syncopate::train {
namespace {

constexpr double kAuxiliaryWeight = 0.3;  // section 5

/// Halves the image, rounding up.
at::Tensor halved(const at::Tensor& x) { return at::max_pool2d(x, 3, 2, 0, 1, true); }

/// Channels of a module, as a row of table 1: 1x1; 3x3 reduced, 3x3; 5x5 reduced, 5x5; after pooling.
struct ModuleChannels {
  const char* name;
  int in, one, three_reduced, three, five_reduced, five, pooled;
};

constexpr ModuleChannels kRows[] = {{"3a", 192, 64, 96, 128, 16, 32, 32},     {"3b", 256, 128, 128, 192, 32, 96, 64},
                                    {"4a", 480, 192, 96, 208, 16, 48, 64},    {"4b", 512, 160, 112, 224, 24, 64, 64},
                                    {"4c", 512, 128, 128, 256, 24, 64, 64},   {"4d", 512, 112, 144, 288, 32, 64, 64},
                                    {"4e", 528, 256, 160, 320, 32, 128, 128}, {"5a", 832, 256, 160, 320, 32, 128, 128},
                                    {"5b", 832, 384, 192, 384, 48, 128, 128}};

struct Module {
  Convolution one, three_reduced, three, five_reduced, five, pooled;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
    return at::cat({one(x), three(three_reduced(x).relu_()), five(five_reduced(x).relu_()),
                    pooled(at::max_pool2d(x, 3, 1, 1))},
                   1)
        .relu_();
  }
};

Module build_module(Builder& builder, const ModuleChannels& row) {
  const auto made = [&](const char* part, int in, int out, int kernel) {
    return builder.convolution(fmt::format("inception_{}/{}", row.name, part),
                               {.in = in, .out = out, .kernel = {kernel, kernel}, .bias = true});
  };
  return {.one = made("1x1", row.in, row.one, 1),
          .three_reduced = made("3x3_reduce", row.in, row.three_reduced, 1),
          .three = made("3x3", row.three_reduced, row.three, 3),
          .five_reduced = made("5x5_reduce", row.in, row.five_reduced, 1),
          .five = made("5x5", row.five_reduced, row.five, 5),
          .pooled = made("pool_proj", row.in, row.pooled, 1)};
}

/// A classifier of an inner module's output: it shortens the path of the gradient to earlier layers.
struct Auxiliary {
  Convolution conv;
  Linear fc, classifier;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor small = conv(at::adaptive_avg_pool2d(x, {4, 4})).relu_();
    return classifier(fc(small.flatten(1)).relu_());
  }
};

struct ModulePlace {
  std::string name;
  int in = 0;  ///< channels of its input
};

Auxiliary build_auxiliary(Builder& builder, const ModulePlace& place, int classes) {
  const auto& [name, in] = place;
  return {builder.convolution(name + "/conv", {.in = in, .out = 128, .kernel = {1, 1}, .bias = true}),
          builder.linear(name + "/fc", 128 * 4 * 4, 1024), builder.linear(name + "/classifier", 1024, classes)};
}

struct ModuleStep {
  Module module;
  bool halves = false;                 ///< after the module
  std::optional<Auxiliary> auxiliary;  ///< after the module
};

std::vector<ModuleStep> build_steps(Builder& builder, const ModelOptions& options) {
  std::vector<ModuleStep> steps;
  for (const ModuleChannels& row : kRows) {
    const std::string_view name = row.name;
    ModuleStep step{build_module(builder, row), name == "3b" || name == "4e", {}};
    if (options.auxiliary && name == "4a") step.auxiliary = build_auxiliary(builder, {"loss1", 512}, options.classes);
    if (options.auxiliary && name == "4d") step.auxiliary = build_auxiliary(builder, {"loss2", 528}, options.classes);
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

Network build_googlenet(Builder& builder, const GoogLeNetStem& stem, const ModelOptions& options) {
  const Convolution conv1 = builder.convolution(
      fmt::format("conv1/{0}x{0}_s{1}", stem.kernel, stem.stride),
      {.in = 3, .out = 64, .kernel = {stem.kernel, stem.kernel}, .stride = stem.stride, .bias = true});
  const Convolution reduce =
      builder.convolution("conv2/3x3_reduce", {.in = 64, .out = 64, .kernel = {1, 1}, .bias = true});
  const Convolution conv2 = builder.convolution("conv2/3x3", {.in = 64, .out = 192, .bias = true});
  const std::vector<ModuleStep> steps = build_steps(builder, options);
  const Linear classifier = builder.linear("loss3/classifier", 1024, options.classes);
  return builder.finish_with([=](const at::Tensor& images, const at::Tensor& target, bool training) {
    std::vector<Answer> answers(1);
    at::Tensor x = response_norm(halved(conv1(images).relu_()));
    x = halved(response_norm(conv2(reduce(x).relu_()).relu_()));
    for (const ModuleStep& step : steps) {
      x = step.module(x);
      if (training && step.auxiliary) answers.push_back({(*step.auxiliary)(x), target, kAuxiliaryWeight});
      if (step.halves) x = halved(x);
    }
    answers.front() = {classifier(x.mean({2, 3})), target};
    return answers;
  });
}

}  // namespace syncopate::train
