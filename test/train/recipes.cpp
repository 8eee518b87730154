// Training by recipes: parts train as runs of their own would, and what was kept goes from one to the next.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

using nlohmann::json;

class Recipes : public TrainingJobs {
 protected:
  explicit Recipes(const std::string& more = " --fusion-bytes 128KiB")
      : TrainingJobs("--model resnet20 --augment --dense-below 256" + more) {}
  void SetUp() override { draw_pictures(30); }
  /// The words that train by a recipe of these parts (JSON, without their brackets).
  [[nodiscard]] std::string by(const std::string& parts, const std::string& name = "recipe.json") const {
    std::ofstream(folder / name) << R"({"parts": [)" << parts << "]}";
    return "--data " + pictures + " --recipe " + folder / name + " ";
  }
  /// The same training as one run for each part, each of which goes on from the checkpoint of the one before.
  [[nodiscard]] std::string digest_of_chain(const std::vector<std::string>& parts) const {
    std::string last, resume;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string checkpoint = file + std::to_string(i);
      last = digest(2, "--warmup 0 --data " + pictures + " " + parts[i] + resume + " --checkpoint " + checkpoint);
      resume = " --resume " + checkpoint;
    }
    return last;
  }
};

const std::string kSparse = R"({"epochs": 1, "batch": 5, "resolution": 32, "learning_rate": [0.05, 0.05],
                                "codec": "topk:0.1"})",
                  kSharded = R"({"epochs": 2, "batch": 4, "resolution": 48, "learning_rate": [0.02, 0.02],
                                "exchange": "sharded"})",
                  kRooted = R"({"epochs": 1, "batch": 6, "resolution": 40, "learning_rate": [0.01, 0.01],
                                "exchange": "reduce_broadcast", "algorithm": "linear_pipeline"})",
                  kHalf = R"({"epochs": 1, "batch": 3, "resolution": 32, "learning_rate": [0.01, 0.01],
                                "codec": "fp16", "exchange": "hierarchical"})";

TEST_F(Recipes, TrainPartsAsRunsThatGoOnFromEachOthersCheckpoints) {
  EXPECT_EQ(digest(2, by(kSparse + "," + kSharded + "," + kRooted + "," + kHalf)),
            digest_of_chain({"--epochs 1 --batch 5 --resolution 32 --lr 0.05 --codec topk:0.1",
                             "--epochs 3 --batch 4 --resolution 48 --lr 0.02 --exchange sharded",
                             "--epochs 4 --batch 6 --resolution 40 --lr 0.01 --exchange reduce_broadcast --algorithm "
                             "linear_pipeline",
                             "--epochs 5 --batch 3 --resolution 32 --lr 0.01 --codec fp16 --exchange hierarchical"}));
}

class ServedRecipes : public Recipes {
 protected:
  ServedRecipes() : Recipes("") {}
};

/// Servers keep the weights and the optimizer's state, and workers stay connected.
TEST_F(ServedRecipes, TrainPartsWithTheBitsOfAnAllReduce) {
  const auto parts = [&](const std::string& exchange) {
    const std::string rest = R"(, "exchange": ")" + exchange + R"("})";
    return by(R"({"epochs": 1, "batch": 5, "resolution": 32, "learning_rate": [0.05, 0.05])" + rest +
              R"(, {"epochs": 2, "batch": 4, "resolution": 48, "learning_rate": [0.02, 0.01])" + rest);
  };
  EXPECT_EQ(digest_of(train(2, parts("parameter_server"), {"--servers", "2"}), 2), digest(2, parts("allreduce")));
}

TEST_F(Recipes, EvaluateAtTheResolutionOfThePart) {
  const auto losses = [&](const std::string& words) {
    std::vector<double> found;
    for (const json& epoch : rows(train(2, words + " --evaluate-every 3"), "epoch")) found.push_back(epoch.at("loss"));
    return found;
  };
  const std::string rest = R"("epochs": 1, "batch": 5, "learning_rate": [0.05, 0.05], "resolution": )";
  const std::vector<double> both = losses(by("{" + rest + "32}, {" + rest + "48}")),
                            small = losses(by("{" + rest + "32}"));
  ASSERT_EQ(both.size(), 2U);
  ASSERT_EQ(small.size(), 1U);
  EXPECT_EQ(both[0], small[0]);
  const std::string words = "--warmup 0 --batch 5 --lr 0.05 --data " + pictures;
  (void)digest(2, words + " --resolution 32 --epochs 1 --evaluate-every 3 --checkpoint " + file);
  EXPECT_EQ(both[1], losses(words + " --resolution 48 --epochs 2 --resume " + file).at(0));
  EXPECT_NE(both[1], losses(words + " --resolution 32 --epochs 2 --resume " + file).at(0));
}

TEST_F(Recipes, KeepEveryBitWhereAPartChangesNothing) {
  for (const std::string rest :
       {R"("codec": "topk:0.05")", R"("codec": "terngrad")", R"("codec": "low_rank:2")", R"("exchange": "sharded")",
        R"("codec": "topk:0.05", "exchange": "hierarchical")", R"("exchange": "reduce_broadcast")"}) {
    const std::string same = R"("batch": 4, "resolution": 32, )" + rest;
    EXPECT_EQ(digest(2, by(R"({"epochs": 1, )" + same + R"(}, {"epochs": 2, )" + same + "}")),
              digest(2, by(R"({"epochs": 3, )" + same + "}")))
        << rest;
  }
}

TEST_F(Recipes, KeepWhatMomentumCorrectionHasAccumulated) {
  const std::string same = R"("batch": 4, "resolution": 32, "codec": "topk:0.05"})", words = " --feedback momentum";
  EXPECT_EQ(digest(2, by(R"({"epochs": 1, )" + same + R"(, {"epochs": 1, )" + same) + words),
            digest(2, by(R"({"epochs": 2, )" + same) + words));
}

TEST_F(Recipes, GoOnInThePartInWhichTheyWereInterrupted) {
  const std::string words = by(kSparse + "," + kSharded + "," + kRooted + "," + kHalf), whole = digest(2, words);
  for (const int steps : {2, 3, 5, 11, 12, 14, 17}) {  // parts end after steps 3, 11, 14 and 19
    const std::string checkpoint = file + std::to_string(steps);
    (void)digest(2, words + "--checkpoint " + checkpoint + " --steps " + std::to_string(steps));
    EXPECT_EQ(digest(2, words + "--resume " + checkpoint), whole) << "interrupted after step " << steps;
  }
  (void)digest(3, words + "--resume " + file + "5");
}

TEST_F(Recipes, SayWhichPartAStepIsOfAndWhatItIs) {
  const Ended ended = train(2, by(kSparse + "," + kSharded));
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto begun = rows(ended, "part"), steps = rows(ended, "step");
  ASSERT_EQ(begun.size(), 2U);
  EXPECT_EQ(begun[0].at("codec"), "topk:0.1");
  const json second{{"event", "part"},
                    {"step", 3},
                    {"part", 2},
                    {"first_epoch", 1},
                    {"epochs", 2},
                    {"resolution", 48},
                    {"batch", 4},
                    {"codec", "none"},
                    {"learning_rate", {0.02, 0.02}},
                    {"exchange", "sharded"},
                    {"algorithm", "auto"}};
  json timeless = begun[1];
  EXPECT_EQ(timeless.erase("time"), 1U);
  EXPECT_EQ(timeless, second);
  ASSERT_EQ(steps.size(), 11U);
  for (const json& step : steps) EXPECT_EQ(step.at("part"), step.at("step") <= 3 ? 1 : 2) << step;
  EXPECT_LT(steps[1].at("wire_bytes"), steps[5].at("wire_bytes")) << "the first part's codec sends less";
  for (const json& end : rows(ended, "end")) {
    ASSERT_EQ(end.at("parts").size(), 2U);
    EXPECT_EQ(end.at("parts")[1].at("steps"), 8);
    EXPECT_EQ(end.at("parts")[1].at("step_seconds").at("n"), 5);
  }
}

TEST_F(Recipes, SayOnceWhatACodecHadLeftOutAndIsLost) {
  const Ended changed = train(2, by(kSparse + "," + kHalf));
  EXPECT_EQ(changed.code, 0) << changed.error;
  const std::string says = "part 2 drops the codec's leftovers of part 1";
  const std::size_t found = changed.error.find(says);
  ASSERT_NE(found, std::string::npos) << changed.error;
  EXPECT_EQ(changed.error.find(says, found + 1), std::string::npos)
      << "more than one rank reports it: " << changed.error;
  EXPECT_EQ(train(2, by(kSparse + "," + kSparse)).error.find(says), std::string::npos);
  EXPECT_EQ(train(2, by(kHalf + "," + kSparse)).error.find(says), std::string::npos);
  std::string denser = kSparse;
  denser.replace(denser.find("topk:0.1"), 8, "topk:0.25");
  EXPECT_EQ(train(2, by(kSparse + "," + denser)).error.find(says), std::string::npos) << "it belongs to the name";
}

// A codec keeps its own rows under the exchange hierarchical, all of them under the other.
TEST_F(Recipes, BeginACodecAnewUnderAnExchangeThatDividesItsStateOtherwise) {
  const std::string same = R"("epochs": 1, "batch": 5, "resolution": 32, "codec": "topk:0.05")",
                    words = by("{" + same + R"(}, {"exchange": "hierarchical", )" + same + "}");
  const Ended whole = train(2, words);
  EXPECT_NE(whole.error.find("part 2 drops the codec's leftovers of part 1"), std::string::npos) << whole.error;
  (void)digest(2, words + "--steps 3 --checkpoint " + file);
  const Ended resumed = train(2, words + "--resume " + file);
  EXPECT_NE(resumed.error.find("2 of 2 ranks have no codec state"), std::string::npos) << resumed.error;
  EXPECT_EQ(rows(resumed, "end").at(0).at("digest"), rows(whole, "end").at(0).at("digest"));
}

TEST_F(Recipes, LowerTheRateAlongTheLineWithinAPart) {
  const std::string rest = R"("epochs": 2, "batch": 4, "resolution": 32})";
  const auto with = [&](const char* rates) {
    return digest(2, by(std::string(R"({"learning_rate": )") + rates + "," + rest));
  };
  const std::string falling = with("[0.1, 0.0]");
  EXPECT_NE(falling, with("[0.1, 0.1]"));
  EXPECT_NE(falling, with("[0.1, 0.05]"));
}

TEST_F(Recipes, TakePicturesOfAnySizeFromACache) {
  const std::string words = by(kSparse + "," + kSharded), plain = digest(2, words);
  EXPECT_EQ(digest(2, words + "--cache 10MiB"), plain);
  EXPECT_EQ(digest(2, words + "--cache-disk 10MiB --cache-folder " + folder / "held"), plain);
}

/// The 28 epochs, whole and scaled down to two emulated hosts of two ranks.
class Dawnbench : public TrainingJobs {
 protected:
  Dawnbench() : TrainingJobs("--model resnet20") {}
  void SetUp() override {}
  [[nodiscard]] Ended on_two_hosts(const std::string& words) const {
    return train(4, "--data " + pictures + " " + words, {"--lab", "none", "--ranks-per-host", "2"});
  }
  /// The recipe with the exchange of its later parts in all parts.
  [[nodiscard]] std::string dense() const {
    std::ifstream file(DAWNBENCH_SMALL);
    std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string sparse = R"("mstopk:0.01", "exchange")";
    text.replace(text.find(sparse), sparse.size(), R"("fp16", "algorithm")");
    std::ofstream(folder / "dense.json") << text;
    return folder / "dense.json";
  }
};

TEST_F(Dawnbench, RunsToItsEnd) {
  const std::string large = folder / "large";
  ASSERT_EQ(syncopate({"data", "draw", "--out", large, "--format", "folder", "--size", "96..288", "--train", "5",
                       "--test", "2", "--seed", "2"})  // of classes that the five have
                .code,
            0);
  const Ended ended = train(2, "--evaluate-samples 2 --data " + large + " --recipe " DAWNBENCH);
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto begun = rows(ended, "part"), steps = rows(ended, "step");
  ASSERT_EQ(begun.size(), 5U);
  EXPECT_EQ(begun[4].at("resolution"), 288);
  ASSERT_EQ(steps.size(), 28U) << "an epoch of so few pictures is a step";
}

TEST_F(Dawnbench, ScaledDownLearnsItsPicturesDenseAndWithMSTopKInTheFirstPart) {
  draw_pictures(64);  // an epoch is two steps
  const std::filesystem::path set = pictures;
  std::filesystem::remove_all(set / "val");
  std::filesystem::copy(set / "train", set / "val", std::filesystem::copy_options::recursive);
  for (const std::string& recipe : {std::string(DAWNBENCH_SMALL), dense()}) {
    const Ended ended = on_two_hosts("--evaluate-every 1000 --recipe " + recipe);
    (void)digest_of(ended, 4);
    EXPECT_EQ(rows(ended, "part").size(), 5U);
    const json end = rows(ended, "end").at(0);
    EXPECT_GT(end.at("accuracy").get<double>(), 0.4) << recipe << "; chance is 0.1";
    EXPECT_GT(end.at("top_5_accuracy").get<double>(), 0.8) << recipe << "; chance is 0.5";
  }
}

TEST_F(Dawnbench, ScaledDownGoesOnWithTheSameBitsWhenInterruptedAmidMSTopK) {
  draw_pictures(16);  // an epoch is a step
  const std::string words = std::string("--recipe ") + DAWNBENCH_SMALL + " ", whole = digest_of(on_two_hosts(words), 4);
  (void)digest_of(on_two_hosts(words + "--steps 7 --checkpoint " + file), 4);
  EXPECT_EQ(digest_of(on_two_hosts(words + "--resume " + file), 4), whole);
}

class RecipesOfText : public TrainingJobs {
 protected:
  RecipesOfText() : TrainingJobs("--model transformer --layers 1 --width 32 --heads 2 --context 16 --dense-below 0") {}
};

TEST_F(RecipesOfText, ChangeTheBatchAndTheCodec) {
  const std::string text = folder / "text", recipe = folder / "recipe.json";
  std::ofstream(text) << std::string(1500, 'a') << std::string(1500, 'b');
  std::ofstream(recipe) << R"({"parts": [{"epochs": 1, "batch": 8, "codec": "bf16"}, {"epochs": 1, "batch": 4}]})";
  const std::string words = "--data " + text;
  (void)digest(2, words + " --epochs 1 --batch 8 --codec bf16 --checkpoint " + file);
  EXPECT_EQ(digest(2, words + " --recipe " + recipe), digest(2, words + " --epochs 2 --batch 4 --resume " + file));
}

}  // namespace
}  // namespace syncopate::test
