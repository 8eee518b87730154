// Evaluations: the shares of samples whose label is the most probable class, and one of the five most probable.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;

class Evaluation : public TrainingJobs {
 protected:
  Evaluation() : TrainingJobs("--model linear --batch 4 --steps 1") {}
  /// The only evaluation of a run, also repeated in the last row.
  [[nodiscard]] static nlohmann::json evaluation_of(const Ended& ended) {
    const auto evaluations = rows(ended, "epoch"), ends = rows(ended, "end");
    if (evaluations.size() != 1 || ends.empty()) {
      ADD_FAILURE() << ended.error;
      return nlohmann::json::object();
    }
    for (const char* name : {"accuracy", "top_5_accuracy", "loss"})
      EXPECT_EQ(evaluations[0].value(name, -1.0), ends[0].value(name, -1.0)) << name;
    return evaluations[0];
  }
};

/// Any network gives equal pictures equal logits, so with every label once, one is the most probable class, five are
/// among the first five.
TEST_F(Evaluation, OfOnePictureUnderEveryLabelIsExact) {
  const std::string set = folder / "set";
  fs::create_directories(set);
  for (const std::string part : {"train", "t10k"}) {
    std::string pixels{0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 28, 0, 0, 0, 28}, labels{0, 0, 8, 1, 0, 0, 0, 10};
    for (int label = 0; label < 10; ++label) {
      labels.push_back(static_cast<char>(label));
      for (int pixel = 0; pixel < 28 * 28; ++pixel)
        pixels.push_back(static_cast<char>(part == "train" ? label * pixel : pixel));
    }
    std::ofstream(set + "/" + part + "-images-idx3-ubyte", std::ios::binary) << pixels;
    std::ofstream(set + "/" + part + "-labels-idx1-ubyte", std::ios::binary) << labels;
  }
  for (const int ranks : {1, 2}) {
    const auto found = evaluation_of(train(ranks, "--evaluate-every 1 --data " + set));
    EXPECT_EQ(found.value("accuracy", -1.0), 0.1) << ranks;
    EXPECT_EQ(found.value("top_5_accuracy", -1.0), 0.5) << ranks;
  }
}

TEST_F(Evaluation, OfFiveClassesHasNoFirstFive) {
  draw_pictures(40);
  const std::string words = "--evaluate-every 1 --resolution 32 --data " + pictures;
  EXPECT_TRUE(evaluation_of(train(1, words)).contains("top_5_accuracy"));
  for (const char* part : {"train", "val"}) {
    std::vector<fs::path> classes(fs::directory_iterator(fs::path(pictures) / part), {});
    std::sort(classes.begin(), classes.end());
    for (std::size_t i = 5; i < classes.size(); ++i) fs::remove_all(classes[i]);
  }
  const auto found = evaluation_of(train(1, words));
  EXPECT_TRUE(found.contains("accuracy"));
  EXPECT_FALSE(found.contains("top_5_accuracy"));
}

}  // namespace
}  // namespace syncopate::test
