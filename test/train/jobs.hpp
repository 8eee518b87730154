// Training jobs on drawn images, as a user starts them: their words, the rows that they print, what they end with.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "process/run_program.hpp"

namespace syncopate::test {

/// The rows of an event under --json, of all ranks, in the order in which they were printed.
inline std::vector<nlohmann::json> rows(const Ended& ended, const std::string& event) {
  std::vector<nlohmann::json> found;
  for (const std::string& line : lines_of(ended.output)) {
    auto row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_object() && row.value("event", "") == event) found.push_back(std::move(row));
  }
  return found;
}

class TrainingJobs : public testing::Test {
 protected:
  explicit TrainingJobs(const std::string& always = "") : always_(always) {}
  void SetUp() override {
    ASSERT_EQ(syncopate({"data", "draw", "--out", images, "--train", "80", "--test", "10", "--seed", "1"}).code, 0);
  }

  /// Trains on the images, without evaluation unless `more` has it. `job`: arguments of `syncopate run`.
  [[nodiscard]] Ended train(int ranks, const std::string& more, const std::vector<std::string>& job = {}) const {
    std::vector<std::string> words{"run", "-n", std::to_string(ranks)};
    words.insert(words.end(), job.begin(), job.end());
    words.insert(words.end(), {"--", SYNCOPATE_PROGRAM, "train", "--json"});
    if (more.find("--data ") == std::string::npos) words.insert(words.end(), {"--data", images});
    if (more.find("--evaluate-every ") == std::string::npos) words.insert(words.end(), {"--evaluate-every", "0"});
    std::istringstream stream(always_ + " " + more);
    for (std::string word; stream >> word;) words.push_back(word);
    return syncopate(words);
  }

  /// The digest that all ranks ended with.
  [[nodiscard]] std::string digest(int ranks, const std::string& more) const {
    SCOPED_TRACE(more);
    return digest_of(train(ranks, more), ranks);
  }
  [[nodiscard]] static std::string digest_of(const Ended& ended, int ranks) {
    EXPECT_EQ(ended.code, 0) << ended.error;
    const auto ends = rows(ended, "end");
    EXPECT_EQ(ends.size(), static_cast<std::size_t>(ranks)) << ended.error;
    std::set<std::string> digests;
    for (const auto& end : ends) digests.insert(end.at("digest").get<std::string>());
    EXPECT_EQ(digests.size(), 1U) << "ranks ended with different parameters";
    return digests.empty() ? "none" : *digests.begin();
  }

  /// Pictures in folders, ten classes, of 40 to 60 pixels.
  void draw_pictures(int pictures_to_train) const {
    const Ended drawn = syncopate({"data", "draw", "--out", pictures, "--format", "folder", "--size", "40..60",
                                   "--train", std::to_string(pictures_to_train), "--test", "10", "--seed", "1"});
    ASSERT_EQ(drawn.code, 0) << drawn.error;
  }

  TemporaryFolder folder;
  const std::string images = folder / "images", pictures = folder / "pictures", file = folder / "checkpoint";

 private:
  const std::string always_;
};

}  // namespace syncopate::test
