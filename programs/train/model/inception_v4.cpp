// Inception-v4 (Szegedy, Ioffe, Vanhoucke, Alemi 2017, figures 3 to 9), without dropout: 42,679,816 parameters.
#include <fmt/format.h>

#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train::model {
namespace {

/// A convolution with normalisation and ReLU. Without channels a pooling: stride 1 averages 3x3, stride 2 halves.
struct Unit {
  int out = 0;
  std::array<int, 2> kernel{1, 1};
  int stride = 1;
  bool same = true;
};
constexpr Unit kAverage{}, kHalve{.stride = 2};
constexpr std::array<int, 2> k33{3, 3}, k17{1, 7}, k71{7, 1}, k13{1, 3}, k31{3, 1};

/// Units in sequence; the last ones may be side by side.
struct BranchPlan {
  std::vector<Unit> chain, fork = {};
};
using ModulePlan = std::vector<BranchPlan>;  // the channels of its branches are concatenated

const ModulePlan kMixed3a{{{kHalve}}, {{{96, k33, 2, false}}}};
const ModulePlan kMixed4a{{{{64}, {96, k33, 1, false}}}, {{{64}, {64, k17}, {64, k71}, {96, k33, 1, false}}}};
const ModulePlan kMixed5a{{{{192, k33, 2, false}}}, {{kHalve}}};
const ModulePlan kMixed5{{{{96}}}, {{{64}, {96, k33}}}, {{{64}, {96, k33}, {96, k33}}}, {{kAverage, {96}}}};
const ModulePlan kMixed6a{{{{384, k33, 2, false}}}, {{{192}, {224, k33}, {256, k33, 2, false}}}, {{kHalve}}};
const ModulePlan kMixed6{{{{384}}},
                         {{{192}, {224, k17}, {256, k71}}},
                         {{{192}, {192, k71}, {224, k17}, {224, k71}, {256, k17}}},
                         {{kAverage, {128}}}};
const ModulePlan kMixed7a{
    {{{192}, {192, k33, 2, false}}}, {{{256}, {256, k17}, {320, k71}, {320, k33, 2, false}}}, {{kHalve}}};
const ModulePlan kMixed7{{{{256}}},
                         {{{384}}, {{256, k13}, {256, k31}}},
                         {{{384}, {448, k31}, {512, k13}}, {{256, k13}, {256, k31}}},
                         {{kAverage, {256}}}};

struct InceptionStage {
  std::optional<Convolution> conv;
  BatchNorm norm;
  bool halves = false;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x, bool training) const {
    if (conv) return norm((*conv)(x), training).relu_();
    return halves ? at::max_pool2d(x, 3, 2) : at::avg_pool2d(x, 3, 1, 1, false, false);
  }
};

struct Branch {
  std::vector<InceptionStage> chain, fork;
};
using Module = std::vector<Branch>;

at::Tensor run(const Module& module, const at::Tensor& input, bool training) {
  std::vector<at::Tensor> parts;
  for (const Branch& branch : module) {
    at::Tensor x = input;
    for (const InceptionStage& stage : branch.chain) x = stage(x, training);
    if (branch.fork.empty()) parts.push_back(x);
    for (const InceptionStage& stage : branch.fork) parts.push_back(stage(x, training));
  }
  return at::cat(parts, 1);
}

InceptionStage build_stage(Builder& builder, const std::string& name, int in, const Unit& unit) {
  if (unit.out == 0) return {{}, {}, unit.stride == 2};
  Convolution conv = builder.convolution(
      name + ".conv", {.in = in, .out = unit.out, .kernel = unit.kernel, .stride = unit.stride, .same = unit.same});
  return {std::move(conv), builder.batch_norm(name + ".bn", unit.out)};
}

/// Builds modules in sequence; keeps the number of channels of the last one.
class Tower final {
 public:
  Tower(Builder& builder, int channels) : builder_(builder), channels_(channels) {}

  void add(const std::string& name, const ModulePlan& plan) {
    Module module;
    int out = 0;
    for (const BranchPlan& branch : plan) {
      module.emplace_back();
      out += add(fmt::format("{}.b{}", name, module.size() - 1), branch, module.back());
    }
    modules_.push_back(std::move(module));
    channels_ = out;
  }

  [[nodiscard]] int channels() const { return channels_; }
  [[nodiscard]] std::vector<Module> modules() { return std::move(modules_); }

 private:
  int add(const std::string& name, const BranchPlan& plan, Branch& branch) {
    int in = channels_, index = 0;
    const bool alone = plan.chain.size() == 1 && plan.fork.empty();
    for (const Unit& one : plan.chain) {
      branch.chain.push_back(build_stage(builder_, alone ? name : fmt::format("{}.{}", name, index), in, one));
      if (one.out > 0) in = one.out;
      ++index;
    }
    int out = plan.fork.empty() ? in : 0;
    for (const Unit& one : plan.fork) {
      branch.fork.push_back(
          build_stage(builder_, fmt::format("{}.{}{}", name, index, branch.fork.empty() ? "a" : "b"), in, one));
      out += one.out;
    }
    return out;
  }
  Builder& builder_;
  int channels_;
  std::vector<Module> modules_;
};

Network build(Builder& builder, const ModelOptions& options) {
  const InceptionStage first = build_stage(builder, "Conv2d_1a_3x3", 3, {32, k33, 2, false});
  const InceptionStage second = build_stage(builder, "Conv2d_2a_3x3", 32, {32, k33, 1, false});
  const InceptionStage third = build_stage(builder, "Conv2d_2b_3x3", 32, {64, k33});
  Tower tower(builder, 64);
  tower.add("Mixed_3a", kMixed3a);
  tower.add("Mixed_4a", kMixed4a);
  tower.add("Mixed_5a", kMixed5a);
  for (const char letter : {'b', 'c', 'd', 'e'}) tower.add(fmt::format("Mixed_5{}", letter), kMixed5);
  tower.add("Mixed_6a", kMixed6a);
  for (const char letter : {'b', 'c', 'd', 'e', 'f', 'g', 'h'}) tower.add(fmt::format("Mixed_6{}", letter), kMixed6);
  tower.add("Mixed_7a", kMixed7a);
  for (const char letter : {'b', 'c', 'd'}) tower.add(fmt::format("Mixed_7{}", letter), kMixed7);
  const Linear last = builder.linear("last_linear", tower.channels(), options.classes);
  return builder.finish([=, modules = tower.modules()](const at::Tensor& images, bool training) {
    at::Tensor x = third(second(first(images, training), training), training);
    for (const Module& module : modules) x = run(module, x, training);
    return last(x.mean({2, 3}));
  });
}

}  // namespace

extern constinit const Model inception_v4;
const Model inception_v4{.name = "inception_v4",
                         .summary = "Inception-v4 for photographs, 42,679,816 parameters in 449 tensors",
                         .input = DataKind::images,
                         .side = 299,
                         .least_side = 75,
                         .classes = 1000,
                         .learning_rate = 0.05,
                         .warmup = 50,
                         .build = build};

}  // namespace syncopate::train::model
