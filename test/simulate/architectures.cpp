// Layer tables: computed from the architectures, they have the published numbers of parameters, tensors and operations.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "network/architecture.hpp"
#include "syncopate/error.hpp"

namespace syncopate::network {
namespace {

struct Published {
  std::size_t tensors, layers;
  std::uint64_t elements;
  double gigamacs;  ///< forward, per sample
};

/// Parameters as their authors and frameworks state them; multiply-adds within the spread of published counts. Those of
/// alexnet32, densenet40 and googlenet32 are counted by hand.
const std::map<std::string_view, Published> kPublished = {
    {"alexnet", {16, 8, 60'965'224, 0.725}},         {"alexnet32", {16, 8, 28'569'994, 0.2}},
    {"bert_base", {199, 101, 109'482'240, 11.2}},    {"densenet40", {119, 79, 2'218'522, 0.575}},
    {"googlenet32", {116, 58, 5'979'194, 0.1244}},   {"resnet101", {314, 209, 44'549'160, 7.8}},
    {"googlenet", {116, 58, 6'998'552, 1.58}},       {"googlenet_aux", {128, 64, 13'378'280, 1.593}},
    {"inception_v4", {449, 299, 42'679'816, 12.28}}, {"inception_v4_slim", {300, 299, 42'649'769, 12.28}},
    {"resnet110", {329, 219, 1'727'962, 0.255}},     {"resnet20", {59, 39, 269'722, 0.041}},
    {"resnet50", {161, 107, 25'557'032, 4.11}},      {"transformer_base", {181, 127, 63'045'632, 17.35}},
    {"vgg16", {32, 16, 138'357'544, 15.5}},          {"vgg19", {38, 19, 143'667'240, 19.64}}};

TEST(Architecture, HasThePublishedTotals) {
  for (const Architecture* entry : architectures()) {
    ASSERT_TRUE(kPublished.contains(entry->name)) << entry->name << " has no published numbers here";
    const Published& published = kPublished.at(entry->name);
    const std::vector<Tensor> tensors = entry->tensors();
    std::uint64_t elements = 0;
    double flops = 0;
    for (const Tensor& tensor : tensors) elements += tensor.elements, flops += tensor.flops;
    EXPECT_EQ(tensors.size(), published.tensors) << entry->name;
    EXPECT_EQ(layers_of(tensors).size(), published.layers) << entry->name;
    EXPECT_EQ(elements, published.elements) << entry->name;
    EXPECT_NEAR(flops / 2e9, published.gigamacs, 0.02 * published.gigamacs) << entry->name;
  }
  EXPECT_EQ(architectures().size(), kPublished.size());
}

TEST(Architecture, NamesEveryTensorOnce) {
  for (const Architecture* entry : architectures()) {
    std::set<std::string> names;
    for (const Tensor& tensor : entry->tensors()) {
      EXPECT_TRUE(names.insert(tensor.name).second) << entry->name << ' ' << tensor.name;
      EXPECT_GT(tensor.elements, 0U) << entry->name << ' ' << tensor.name;
      EXPECT_GT(tensor.flops, 0) << entry->name << ' ' << tensor.name;
    }
  }
}

TEST(Architecture, OfLayersJoinsWeightAndBias) {
  const auto layers = layers_of({{"a.weight", 6, 12}, {"a.bias", 2, 4}, {"b.weight", 5, 10}});
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].name, "a");
  EXPECT_EQ(layers[0].elements, 8U);
  EXPECT_EQ(layers[0].flops, 16);
}

TEST(Architecture, KnowsWhereTheWeightIs) {
  const auto layers = layers_of(architecture_named("vgg16").tensors());
  EXPECT_EQ(layers[13].name, "classifier.0");
  EXPECT_EQ(layers[13].elements, 25088U * 4096 + 4096) << "the layer that no placement can balance";
  EXPECT_THROW(std::ignore = architecture_named("vgg17"), Misuse);
}

}  // namespace
}  // namespace syncopate::network
