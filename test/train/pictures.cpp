// Training on pictures in folders: classes come from the folder, damaged ones are named, a resumed run is the same run.
#include <gtest/gtest.h>

#include <filesystem>

#include "process/run_program.hpp"
#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

namespace fs = std::filesystem;

class PicturesInFolders : public TrainingJobs {
 protected:
  PicturesInFolders() : TrainingJobs("--model resnet20 --resolution 32 --augment --batch 4") {}
  void SetUp() override {
    draw_pictures(60);
    for (const char* part : {"train", "val"}) {  // seven classes are left
      for (const char* name : {"arrow", "bars", "cross"}) fs::remove_all(fs::path(pictures) / part / name);
    }
  }
  [[nodiscard]] Ended job(int ranks, const std::string& more) const {
    return train(ranks, "--data " + pictures + " " + more);
  }
  [[nodiscard]] static std::string digest_of(const Ended& ended) {
    const auto ends = rows(ended, "end");
    EXPECT_FALSE(ends.empty()) << ended.error;
    return ends.empty() ? "none" : ends[0].at("digest").get<std::string>();
  }
};

TEST_F(PicturesInFolders, TrainAModelWithAsManyClassesAndSayHowLongTheyAreWaitedFor) {
  const Ended ended = job(2, "--steps 3 --evaluate-every 3");
  ASSERT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(rows(ended, "begin").at(0).at("parameters"), 269'722 - 3 * 65);
  for (const auto& row : rows(ended, "step")) EXPECT_GT(row.at("input_s").get<double>(), 0);
  EXPECT_GT(rows(ended, "end").at(0).at("input_seconds").get<double>(), 0);
}

TEST_F(PicturesInFolders, GiveTheSameParametersWhateverTheThreadsAndResumedInMidEpoch) {
  const std::string whole = digest_of(job(2, "--steps 8 --input-threads 3"));
  ASSERT_EQ(job(2, "--steps 3 --checkpoint " + file).code, 0);
  EXPECT_EQ(digest_of(job(2, "--steps 8 --resume " + file)), whole);
}

TEST_F(PicturesInFolders, ThatAreDamagedAreNamedOrEndTheRun) {
  for (const auto& entry : fs::directory_iterator(fs::path(pictures) / "train/disc"))
    fs::resize_file(entry.path(), 300);
  const Ended skipped = job(2, "--epochs 1");
  EXPECT_EQ(skipped.code, 0) << skipped.error;
  expect_words(skipped.error, {"train/disc/", "another image replaces it"});
  const Ended stopped = job(2, "--epochs 1 --corrupt stop");
  EXPECT_EQ(stopped.code, 1);
  EXPECT_NE(stopped.output.find("\"kind\":\"Corrupt\""), std::string::npos) << stopped.output;
  const Ended verdict = syncopate({"data", "verify", pictures, "--json"});
  EXPECT_EQ(verdict.code, 1);
  EXPECT_NE(verdict.output.find("train/disc/"), std::string::npos) << verdict.output;
}

/// Bytes that came from a tier in an epoch, over all ranks.
double bytes_from(const Ended& ended, const char* tier, std::size_t epoch) {
  double sum = 0;
  for (const auto& end : rows(ended, "end")) sum += end.at("input").at(epoch).at(tier).at("bytes").get<double>();
  return sum;
}

TEST_F(PicturesInFolders, ThroughACacheGiveTheSameParametersAndLeaveTheOriginAloneFromTheSecondEpochOn) {
  const std::string plain = digest_of(job(3, "--epochs 3")),
                    disk = " --cache-folder " + (folder / "held") + " --cache-disk 10MiB";
  for (const std::string& cache : {std::string(" --cache 10MiB"), disk, " --cache 20KiB" + disk,
                                   std::string(" --cache 10MiB --cache-decoded 10MiB")}) {
    const Ended cached = job(3, "--epochs 3 --origin-rate 50MiB" + cache);
    ASSERT_EQ(cached.code, 0) << cached.error;
    EXPECT_EQ(digest_of(cached), plain) << cache;
    if (cache != " --cache 20KiB" + disk) {
      EXPECT_GT(bytes_from(cached, "origin", 0), 0) << cache;
    }
    double decoded = 0;
    for (const auto& end : rows(cached, "end")) decoded += end.at("input").at(2).at("decoded").get<double>();
    EXPECT_EQ(decoded > 0, cache.find("decoded") != std::string::npos) << cache;
    for (const std::size_t epoch : {1, 2}) EXPECT_EQ(bytes_from(cached, "origin", epoch), 0) << cache;
    EXPECT_NE(cached.error.find("--origin-rate"), std::string::npos) << cached.error;
  }
  const Ended again = job(2, "--epochs 1" + disk);  // what three ranks left behind, found by two of them
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_GT(bytes_from(again, "disk", 0) + bytes_from(again, "peers", 0), 0);
}

/// Each worker holds what it has read itself, and does not wait for the others.
TEST_F(PicturesInFolders, ThroughTheCachesOfWorkersGiveTheSameParameters) {
  const std::string words = "--data " + pictures + " --epochs 2 ";
  const Ended cached =
      train(2, words + "--exchange parameter_server --cache-disk 10MiB --cache-folder " + (folder / "held"),
            {"--servers", "1"});
  ASSERT_EQ(cached.code, 0) << cached.error;
  EXPECT_EQ(digest_of(cached), digest_of(train(2, words)));
  EXPECT_EQ(bytes_from(cached, "disk", 0), 0);
  EXPECT_GT(bytes_from(cached, "disk", 1), 0);
  EXPECT_GT(bytes_from(cached, "origin", 1), 0) << "samples that another worker took before";
}

TEST_F(PicturesInFolders, WhoseClassesHaveOtherNamesOnAnotherRankAreAMismatch) {
  const std::string others = folder / "others";
  fs::copy(pictures, others, fs::copy_options::recursive);
  for (const char* part : {"train", "val"})
    fs::rename(fs::path(others) / part / "disc", fs::path(others) / part / "tyre");
  const Ended ended = syncopate({"run", "-n", "2", "--", "sh", "-c",
                                 "exec " SYNCOPATE_PROGRAM
                                 " train --json --model resnet20 --resolution 32 --batch 4 --steps 1 --data $(test "
                                 "$SYNCOPATE_RANK = 0 && echo " +
                                     pictures + " || echo " + others + ")"});
  EXPECT_EQ(ended.code, 1);
  expect_words(ended.error, {"in --data is disc on rank 0 and ", " on rank 1: give every rank the same data"});
}

TEST_F(PicturesInFolders, RefuseACacheThatHasNoPlaceOrNoPictures) {
  EXPECT_NE(job(1, "--cache-folder " + pictures).error.find("need each other"), std::string::npos);
  EXPECT_NE(job(1, "--cache-disk 1GiB").error.find("need each other"), std::string::npos);
  EXPECT_NE(job(1, "--cache-decoded 1GiB").error.find("give also --cache"), std::string::npos);
  EXPECT_EQ(job(1, "--cache many").code, 2);
}

}  // namespace
}  // namespace syncopate::test
