// Training on MNIST's files: models for pictures of 28 pixels, and the data set that is known by its name.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;

class GreyPictures : public TrainingJobs {
 protected:
  GreyPictures() : TrainingJobs("--batch 4 --steps 2") {}
  void SetUp() override {
    fs::create_directories(set);
    write("train", 24);
    write("t10k", 6);
  }
  void write(const std::string& part, int pictures) const {
    std::string pixels{0, 0, 8, 3, 0, 0, 0, static_cast<char>(pictures), 0, 0, 0, 28, 0, 0, 0, 28};
    std::string labels{0, 0, 8, 1, 0, 0, 0, static_cast<char>(pictures)};
    for (int i = 0; i < pictures; ++i) {
      labels.push_back(static_cast<char>(i % 10));
      for (int pixel = 0; pixel < 28 * 28; ++pixel) pixels.push_back(static_cast<char>(i * pixel));
    }
    std::ofstream(set + "/" + part + "-images-idx3-ubyte", std::ios::binary) << pixels;
    std::ofstream(set + "/" + part + "-labels-idx1-ubyte", std::ios::binary) << labels;
  }

  const std::string set = folder / "set";
};

TEST_F(GreyPictures, TrainTheModelsThatTakeTwentyEightPixels) {
  const std::pair<const char*, int> models[] = {{"lenet", 147'946},
                                                {"lenet --resolution 32", 147'946 + (25 - 16) * 32 * 256},
                                                {"mlp --width 16", 38'362},
                                                {"resnet20", 269'722},
                                                {"linear", 23'530}};
  for (const auto& [words, parameters] : models) {
    const Ended ended = train(2, "--data " + set + " --augment --evaluate-every 2 --model " + words);
    EXPECT_NE(digest_of(ended, 2), "none") << words;
    const auto begun = rows(ended, "begin");
    ASSERT_EQ(begun.size(), 1U) << ended.error;
    EXPECT_EQ(begun[0].at("parameters"), parameters) << words;
    EXPECT_EQ(rows(ended, "epoch").size(), 1U) << words;
  }
}

TEST_F(GreyPictures, OfTwoSizesAreNotForAModelWithAWeightForEachPixel) {
  const std::string recipe = folder / "recipe.json";
  std::ofstream(recipe) << R"({"parts": [{"epochs": 1, "batch": 4}, {"epochs": 1, "batch": 4, "resolution": 32}]})";
  for (const std::string model : {"lenet", "mlp", "linear"})
    expect_misuse(syncopate({"train", "--data", set, "--model", model, "--recipe", recipe}),
                  {"part 2: model " + model + " has images of 32 pixels each way here and of 28"});
}

TEST_F(GreyPictures, NamedFashionMnistComeFromTheirPackageOrItIsNamed) {
  const Ended ended = train(1, "--data fashion-mnist --model linear --evaluate-samples 10");
  if (fs::exists("/usr/share/datasets/fashion-mnist")) {
    EXPECT_EQ(ended.code, 0) << ended.error;
    return;
  }
  EXPECT_EQ(ended.code, 2);
  for (const char* named : {"scripts/install --data", "apt-get install dataset-fashion-mnist", "--data FOLDER"})
    EXPECT_NE(ended.error.find(named), std::string::npos) << ended.error;
}

}  // namespace
}  // namespace syncopate::test
