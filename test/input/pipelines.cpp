// The pipeline gives the same pictures for any number of threads and ranks, also from the middle of an epoch.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>

#include "input/pictures.hpp"
#include "syncopate/error.hpp"
#include "syncopate/pipeline.hpp"
#include "thrown.hpp"

namespace syncopate::input::test {
namespace {

namespace fs = std::filesystem;

constexpr int kPixels = 16;

/// 23 pictures of two classes to train on, 4 to evaluate on.
class Pipelines : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "input.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    for (int i = 0; i < 23; ++i)
      write_file(folder / "train" / (i < 12 ? "ant" : "bee") / (std::to_string(100 + i) + ".JPEG"),
                 jpeg_of(drawing(40 + i, 60 - i, 10 * i)));
    for (int i = 0; i < 4; ++i)
      write_file(folder / "val" / (i < 2 ? "ant" : "bee") / (std::to_string(i) + ".png"),
                 png_of({PNG_FORMAT_RGB, 20, 20}, drawing(20, 20, 60 * i).rgb.data()));
  }
  void TearDown() override { fs::remove_all(folder); }

  struct Run {
    int rank = 0, ranks = 1, threads = 1;
    Progress from;
    std::uint64_t steps = 9;
    OnCorrupt on_corrupt = OnCorrupt::skip;
  };
  [[nodiscard]] std::unique_ptr<Pipeline> begun(const Dataset& set, const Run& run) const {
    auto pipeline = std::make_unique<Pipeline>(
        set, set.training, direct_reader(*set.training, {run.rank, run.ranks, 5}),
        PipelineOptions{.threads = run.threads, .ahead = 3, .augment = true, .seed = 5, .on_corrupt = run.on_corrupt});
    pipeline->start(run.from, [steps = run.steps](const Progress& at) {
      return at.step < steps ? std::optional(StepPlan{6, at.epoch == 0 ? kPixels : 2 * kPixels}) : std::nullopt;
    });
    return pipeline;
  }

  /// The pictures and labels of all steps of a rank: by step, then in order.
  using Taken = std::map<std::uint64_t, std::pair<std::vector<float>, std::vector<std::int64_t>>>;
  void take(const Run& run, Taken& taken) const {
    const Dataset set = open_dataset(folder);
    const auto pipeline = begun(set, run);
    for (std::uint64_t step = run.from.step; step < run.steps; ++step) {
      const PictureBatch batch = pipeline->next();
      EXPECT_EQ(batch.at.step, step);
      const std::size_t floats = batch.count() * 3 * static_cast<std::size_t>(batch.side * batch.side);
      auto& [pixels, labels] = taken[step];
      pixels.insert(pixels.end(), batch.pixels.get(), batch.pixels.get() + floats);
      labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    }
    EXPECT_THROW((void)pipeline->next(), Misuse);
  }

  fs::path folder;
};

TEST_F(Pipelines, InAForkedChildRefuseUseAndEndAtOnce) {
  auto pipeline = begun(open_dataset(folder), {});
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    bool is_refused = false;
    try {
      std::ignore = pipeline->next();
    } catch (const Misuse&) {
      is_refused = true;
    }
    pipeline.reset();
    ::_exit(is_refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(pipeline->next().at.step, 0U);
}

TEST_F(Pipelines, GiveTheSamePicturesToAnyNumberOfRanksAndThreads) {
  Taken alone, threads, four;
  take({}, alone);
  take({.threads = 4}, threads);
  for (int rank = 0; rank < 4; ++rank) take({.rank = rank, .ranks = 4, .threads = 2}, four);
  EXPECT_EQ(alone.size(), 9U);
  EXPECT_EQ(alone, threads);
  EXPECT_EQ(alone, four);
}

TEST_F(Pipelines, GoOnInMidEpochAsIfNeverStopped) {
  Taken whole, rest;
  take({}, whole);
  take({.from = {.step = 6, .epoch = 1, .sample = 12}}, rest);
  whole.erase(whole.begin(), whole.find(6));
  EXPECT_EQ(whole, rest);
}

TEST_F(Pipelines, TakeTheNextDecodablePictureForADamagedOneOnAnyRankAndNameItOnce) {
  write_file(folder / "train/ant/103.JPEG", Bytes(100, std::byte{7}));
  write_file(folder / "train/ant/104.JPEG", jpeg_of(drawing(40, 40)));
  fs::resize_file(folder / "train/ant/104.JPEG", 400);
  write_file(folder / "train/ant/111.JPEG", Bytes(100, std::byte{7}));  // the next one is a bee
  const Dataset set = open_dataset(folder);
  const auto pipeline = begun(set, {.steps = 8});
  std::vector<std::string> refused;
  std::map<std::int64_t, int> first_epoch;
  for (int step = 0; step < 8; ++step) {
    const PictureBatch batch = pipeline->next();
    for (const std::string& text : batch.refused) refused.push_back(text);
    if (batch.at.epoch == 0)
      for (const std::int64_t label : batch.labels) ++first_epoch[label];
  }
  EXPECT_EQ(first_epoch, (std::map<std::int64_t, int>{{0, 11}, {1, 12}})) << "labels are of what was taken instead";
  ASSERT_EQ(refused.size(), 3U);
  for (const std::string& text : refused) EXPECT_NE(text.find("train/ant/1"), std::string::npos) << text;
  for (const std::string& text : refused) EXPECT_NE(text.find("byte"), std::string::npos) << text;
  Taken alone, four;
  take({}, alone);
  for (int rank = 0; rank < 4; ++rank) take({.rank = rank, .ranks = 4, .threads = 2}, four);
  EXPECT_EQ(alone, four);
}

TEST_F(Pipelines, StopAtTheStepOfADamagedPictureAndNotBefore) {
  write_file(folder / "train/ant/103.JPEG", Bytes(100, std::byte{7}));
  const Dataset set = open_dataset(folder);
  Order order(23, 5);
  const auto samples = order.share({}, 23, 0, 1).mine;
  const auto place = std::ranges::find(samples, 3U) - samples.begin();
  const auto pipeline = begun(set, {.threads = 3, .on_corrupt = OnCorrupt::stop});
  for (int step = 0; step < place / 6; ++step) (void)pipeline->next();
  for (int again = 0; again < 2; ++again)
    syncopate::test::expect_thrown<Corrupt>([&] { return pipeline->next(); }, {"103.JPEG"});
}

TEST_F(Pipelines, WithTwoDamagedPicturesInAStepStopAtTheFirstOnAnyNumberOfThreads) {
  Order order(23, 5);
  const auto samples = order.share({}, 6, 0, 1).mine;
  const Dataset whole = open_dataset(folder);
  const std::string first = whole.training->name(samples[1]), second = whole.training->name(samples[4]);
  for (const std::string& name : {first, second}) write_file(name, Bytes(100, std::byte{7}));
  const Dataset set = open_dataset(folder);
  for (const int threads : {1, 3})
    syncopate::test::expect_thrown<Corrupt>(
        [&] { return begun(set, {.threads = threads, .on_corrupt = OnCorrupt::stop})->next(); }, {first});
}

TEST_F(Pipelines, OfNothingButDamagedPicturesEndWithAnError) {
  for (const auto& file : fs::recursive_directory_iterator(folder / "train"))
    if (file.is_regular_file()) fs::resize_file(file.path(), 50);
  const Dataset set = open_dataset(folder);
  EXPECT_THROW((void)begun(set, {})->next(), Corrupt);
}

TEST_F(Pipelines, SayWhichFileIsGone) {
  const Dataset set = open_dataset(folder);
  fs::remove_all(folder / "train/bee");
  const auto pipeline = begun(set, {});
  const auto four_steps = [&] {
    for (int step = 0; step < 4; ++step) (void)pipeline->next();
  };
  syncopate::test::expect_thrown<SystemFailure>(four_steps, {"train/bee"});
}

/// Counts the steps that were read.
class CountingReader final : public Reader {
 public:
  CountingReader(std::unique_ptr<Reader> reader, std::atomic<int>& steps) : reader_(std::move(reader)), steps_(steps) {}
  std::vector<Record> read(const Step& step) override {
    ++steps_;
    return reader_->read(step);
  }

 private:
  std::unique_ptr<Reader> reader_;
  std::atomic<int>& steps_;
};

/// A source whose reads wait until `released`.
class StuckReader final : public Reader {
 public:
  StuckReader(std::unique_ptr<Reader> inner, std::shared_future<void> released)
      : inner_(std::move(inner)), released_(std::move(released)) {}
  [[nodiscard]] std::vector<Record> read(const Step& step) override {
    released_.wait();
    return inner_->read(step);
  }

 private:
  std::unique_ptr<Reader> inner_;
  std::shared_future<void> released_;
};

TEST_F(Pipelines, WhoseReadHangsEndWithASystemFailure) {
  const Dataset set = open_dataset(folder);
  std::promise<void> release;
  Pipeline pipeline(
      set, set.training,
      std::make_unique<StuckReader>(direct_reader(*set.training, {0, 1, 5}), release.get_future().share()),
      {.timeout = std::chrono::milliseconds(20)});
  pipeline.start({}, [](const Progress&) { return std::optional(StepPlan{6, kPixels}); });
  EXPECT_EQ(syncopate::test::thrown<SystemFailure>([&] { return pipeline.next(); }),
            "the pictures of a step are not ready after 20 ms: its records are not read");
  release.set_value();
}

TEST_F(Pipelines, HoldNoMoreStepsThanTheyMayAndEndAtAnyTime) {
  const Dataset set = open_dataset(folder);
  for (int taken = 0; taken < 5; ++taken) {
    std::atomic<int> steps = 0;
    Pipeline pipeline(set, set.training, std::make_unique<CountingReader>(direct_reader(*set.training, {}), steps),
                      {.threads = 2, .ahead = 2});
    pipeline.start({}, [](const Progress&) { return StepPlan{6, kPixels}; });
    for (int i = 0; i < taken; ++i) {
      (void)pipeline.next();
      EXPECT_LE(steps.load(), i + 1 + 2);
    }
  }
}

/// A CIFAR-10 folder whose six files have these bytes.
void write_cifar(const fs::path& folder, const std::string& bytes) {
  fs::create_directories(folder);
  for (const char* name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
    std::ofstream(folder / (std::string(name) + ".bin"), std::ios::binary) << bytes;
}

TEST_F(Pipelines, OfCifar10GiveItsBytesNormalised) {
  std::string bytes;
  for (int i = 0; i < 3; ++i) {
    bytes.push_back(static_cast<char>(i));
    for (int p = 0; p < 3072; ++p) bytes.push_back(static_cast<char>((i * 31 + p * 7) % 256));
  }
  write_cifar(folder / "cifar", bytes);
  const Dataset set = open_dataset(folder / "cifar");
  EXPECT_EQ(set.format, "cifar10");
  EXPECT_EQ(set.training->records(), 15U);
  EXPECT_EQ(set.training->label(4), 1);
  std::vector<std::byte> record(set.training->bytes(4));
  set.training->read(4, record);
  EXPECT_EQ(std::memcmp(record.data(), bytes.data() + 3073, 3073), 0);
  std::vector<float> out(3 * 32 * 32);
  set.decoder()->decode(record, {.side = 32}, out.data());
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 1024; ++i)  // every record's channel has all bytes four times
    sum += out[i], squares += static_cast<double>(out[i]) * out[i];
  EXPECT_NEAR(sum / 1024, 0, 1e-5);
  EXPECT_NEAR(squares / 1024, 1, 1e-4);
  EXPECT_NEAR((out[1] - out[0]) / (out[2] - out[1]), 1, 1e-4);
}

TEST_F(Pipelines, OfCifar10TakeLabelsAndLengthsToTheirLimits) {
  std::string bytes(3 * 3073, '\0');
  for (std::size_t i = 0; i < 3; ++i) bytes[3073 * i] = static_cast<char>(7 + i);
  write_cifar(folder / "cifar", bytes);
  const Dataset set = open_dataset(folder / "cifar");
  std::vector<std::byte> record(3073);
  for (std::size_t i = 0; i < 15; ++i) {  // also the first and the last record of each file
    set.training->read(i, record);
    EXPECT_EQ(set.training->label(i), static_cast<std::int64_t>(7 + i % 3));
    EXPECT_EQ(std::to_integer<std::size_t>(record[0]), 7 + i % 3);
    EXPECT_NE(set.training->name(i).find(std::to_string(3073 * (i % 3))), std::string::npos);
  }
  EXPECT_THROW((void)set.training->label(15), std::out_of_range);
  float one[3];
  EXPECT_NO_THROW(set.decoder()->decode(record, {.side = 1}, one));
  EXPECT_THROW(set.decoder()->decode(record, {.side = 0}, one), Misuse);
  const fs::path last = folder / "cifar/data_batch_5.bin";
  for (const std::size_t length : {bytes.size() - 1, bytes.size() + 1}) {
    fs::resize_file(last, length);
    syncopate::test::expect_thrown<Corrupt>([&] { return open_dataset(folder / "cifar"); }, {"not a multiple"});
  }
  fs::resize_file(last, bytes.size() - 1);
  EXPECT_THROW(set.training->read(14, record), Corrupt) << "the file ends early";
  EXPECT_NO_THROW(set.training->read(13, record));
  bytes[0] = 10;
  write_cifar(folder / "cifar", bytes);
  EXPECT_THROW((void)open_dataset(folder / "cifar"), Corrupt) << "there are ten classes";
}

TEST_F(Pipelines, OfFoldersRefuseAPictureWhoseLengthChanged) {
  const Dataset set = open_dataset(folder);
  Bytes record(set.training->bytes(0));
  for (const int change : {-1, 1}) {
    fs::resize_file(set.training->name(0), record.size() + static_cast<std::size_t>(change));
    syncopate::test::expect_thrown<Corrupt>([&] { set.training->read(0, record); }, {"when the set was opened"});
  }
  fs::resize_file(set.training->name(0), record.size());
  EXPECT_NO_THROW(set.training->read(0, record));
}

TEST_F(Pipelines, AFolderThatCannotBeReadIsNamedWithTheReason) {
  fs::permissions(folder, fs::perms::none);
  const bool is_root = geteuid() == 0;
  if (is_root) ASSERT_EQ(seteuid(65534), 0);  // permissions do not apply to root
  const std::string expected = "cannot read " + folder.string() + ": Permission denied";
  EXPECT_EQ(syncopate::test::thrown<SystemFailure>([&] { (void)is_dataset(folder); }), expected);
  EXPECT_EQ(syncopate::test::thrown<SystemFailure>([&] { (void)open_dataset(folder); }), expected);
  if (is_root) ASSERT_EQ(seteuid(0), 0);
  fs::permissions(folder, fs::perms::owner_all);
}

TEST_F(Pipelines, WhatIsNoSetIsRefusedWithWhatWouldBe) {
  EXPECT_THROW((void)open_dataset(folder / "nowhere"), Misuse);
  EXPECT_THROW((void)open_dataset(folder / "train"), Misuse);
  fs::create_directories(folder / "val/wasp");
  EXPECT_NO_THROW((void)open_dataset(folder)) << "a class is a folder of pictures";
  fs::copy_file(folder / "val/ant/0.png", folder / "val/wasp/0.png");
  EXPECT_THROW((void)open_dataset(folder), Misuse) << "a class that training does not have";
}

}  // namespace
}  // namespace syncopate::input::test
