// The models of papers: their published layers, gradients that teach, images of other resolutions.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

/// The parameter counts of the papers, as their networks' definitions give them.
struct Published {
  const char* words;
  std::uint64_t parameters;
};

/// Elements of each layer, in forward order, of a JSON file with an array "layers". The tensors of a layer, such as
/// "fc.weight" and "fc.bias", count together.
std::vector<std::uint64_t> layers_in(const std::string& file) {
  const auto document = nlohmann::json::parse(std::ifstream(file));
  std::vector<std::uint64_t> elements;
  std::string last;
  for (const auto& tensor : document.at("layers")) {
    const auto name = tensor.at("name").get<std::string>();
    const std::string layer =
        name.ends_with(".weight") || name.ends_with(".bias") ? name.substr(0, name.rfind('.')) : name;
    if (layer != last) elements.push_back(0);
    elements.back() += tensor.at("elements").get<std::uint64_t>();
    last = layer;
  }
  return elements;
}

class Publication : public TrainingJobs, public testing::WithParamInterface<Published> {
 protected:
  Publication() : TrainingJobs("--warmup 0 --steps 6 --report-every 1") {}
};

TEST_P(Publication, HasItsLayersAndLearnsFiveSamples) {
  const auto& [words, parameters] = GetParam();
  const std::string text = folder / "text", run = folder / "run", profile = folder / "profile.json";
  std::ofstream(text) << std::string(80, 'a') << std::string(80, 'b');
  ASSERT_EQ(syncopate({"data", "draw", "--out", images, "--train", "5", "--test", "5", "--force"}).code, 0);
  const bool reads = std::string(words).find("transformer") != std::string::npos;
  const Ended ended = train(1, std::string("--model ") + words + " --batch 5 --evaluate-every 6 --out " + run +
                                   (reads ? " --data " + text : ""));
  ASSERT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(rows(ended, "begin").at(0).at("gradient_bytes"), 4 * parameters);
  const auto steps = rows(ended, "step");
  ASSERT_EQ(steps.size(), 6U);
  EXPECT_LT(steps.back().at("loss").get<double>(), 0.8 * steps.front().at("loss").get<double>());
  EXPECT_EQ(rows(ended, "epoch").size(), 1U) << "it was not evaluated";

  const std::string model(words, std::string_view(words).find(' '));
  const bool auxiliary = std::string_view(words).ends_with("--auxiliary");
  const Ended derived = syncopate(
      {"profile", "--architecture", model + (auxiliary ? "_aux" : ""), "--throughput-gflops", "100", "--out", profile});
  ASSERT_EQ(derived.code, 0) << derived.error;
  EXPECT_EQ(layers_in(run + "/run.json"), layers_in(profile)) << "src/network/ lists other layers";
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Publication,
    testing::Values(Published{"resnet20 --lr 0.01", 269'722}, Published{"resnet110 --lr 0.01", 1'727'962},
                    Published{"resnet50 --resolution 64 --lr 0.01", 25'557'032},
                    Published{"resnet101 --resolution 64 --lr 0.01", 44'549'160},
                    Published{"densenet40 --lr 0.01", 2'218'522}, Published{"alexnet --resolution 67", 60'965'224},
                    Published{"alexnet32 --lr 0.0003", 28'569'994}, Published{"vgg16 --lr 0.0002", 138'357'544},
                    Published{"vgg19 --lr 0.0002", 143'667'240}, Published{"googlenet32 --lr 0.01", 5'979'194},
                    Published{"googlenet --resolution 64", 6'998'552},
                    Published{"googlenet --resolution 64 --auxiliary", 13'378'280},
                    Published{"inception_v4 --resolution 75", 42'679'816},
                    Published{"transformer_base --context 8", 63'045'632}),
    [](const auto& one) {
      std::string name = one.param.words;
      std::erase_if(name, [](unsigned char letter) { return std::isalnum(letter) == 0; });
      return name;
    });

class Resolution : public TrainingJobs {
 protected:
  Resolution() : TrainingJobs("--batch 2 --steps 2") {}
};

TEST_F(Resolution, OfImagesMayBeChosen) {
  EXPECT_NE(digest(2, "--model resnet20 --resolution 40"), digest(2, "--model resnet20"));
  EXPECT_EQ(digest(2, "--model resnet20 --resolution 32"), digest(2, "--model resnet20"));
  EXPECT_NE(digest(2, "--model vgg11 --resolution 64"), "none");
}

TEST_F(Resolution, ThatAModelCannotTakeIsRefusedByName) {
  const std::string text = folder / "text";
  std::ofstream(text) << std::string(400, 'a');
  for (const auto& [words, why] :
       {std::pair{"--model alexnet",
                  "takes images of 67 pixels each way and more, and these have 32: give a resolution"},
        std::pair{"--model mlp --resolution 40", "takes images of 28 to 32 pixels each way, and these have 40"},
        std::pair{"--model transformer --context 8 --resolution 40", "which reads text"}}) {
    const bool reads = std::string(words).find("transformer") != std::string::npos;
    const Ended ended = train(1, words + (reads ? " --data " + text : ""));
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_NE((ended.error + ended.output).find(why), std::string::npos) << ended.error;
  }
}

}  // namespace
}  // namespace syncopate::test
