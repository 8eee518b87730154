// Drawn data sets: CIFAR-10's format, the same bytes everywhere, and too hard for a linear classifier.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <set>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

constexpr std::size_t kRecord = 3073;

struct Counts {
  int train = 10, test = 10, seed = 1;
};

Ended draw(const std::string& folder, const Counts& counts, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"data",    "draw",
                                    "--out",   folder,
                                    "--train", std::to_string(counts.train),
                                    "--test",  std::to_string(counts.test),
                                    "--seed",  std::to_string(counts.seed)};
  words.insert(words.end(), more.begin(), more.end());
  return syncopate(words);
}

std::uint64_t fnv1a(const std::string& bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  return hash;
}

TEST(DataDraw, WritesTheFilesOfCifar10WithBalancedClasses) {
  const TemporaryFolder folder;
  ASSERT_EQ(draw(folder / "set", {203, 40, 1}).code, 0);
  std::array<int, 10> count{};
  std::size_t images = 0;
  for (int part = 1; part <= 5; ++part) {
    const std::string bytes = file_text(folder / ("set/data_batch_" + std::to_string(part) + ".bin"));
    ASSERT_EQ(bytes.size() % kRecord, 0U);
    ASSERT_GE(bytes.size() / kRecord, 40U);
    for (std::size_t i = 0; i < bytes.size(); i += kRecord, ++images) ++count.at(static_cast<unsigned char>(bytes[i]));
  }
  EXPECT_EQ(images, 203U);
  for (const int images_of_class : count) EXPECT_NEAR(images_of_class, 20, 1);
  EXPECT_EQ(file_text(folder / "set/test_batch.bin").size(), 40 * kRecord);
  EXPECT_EQ(lines_of(file_text(folder / "set/batches.meta.txt")).size(), 10U);
}

TEST(DataDraw, TheSameSeedGivesTheSameBytesOnAnyMachine) {
  const TemporaryFolder folder;
  ASSERT_EQ(draw(folder / "a", {10, 100, 7}).code, 0);
  ASSERT_EQ(draw(folder / "b", {5, 100, 7}).code, 0);
  ASSERT_EQ(draw(folder / "c", {10, 100, 8}).code, 0);
  const std::string bytes = file_text(folder / "a/test_batch.bin");
  EXPECT_EQ(bytes, file_text(folder / "b/test_batch.bin"));
  EXPECT_NE(bytes, file_text(folder / "c/test_batch.bin"));
  EXPECT_EQ(fnv1a(bytes), 15420214294688022263U)
      << "the drawing changed: results on drawn images are no longer comparable";
}

/// Mean square of the differences between neighbouring bytes: noise and clutter raise it.
double roughness(const std::string& bytes) {
  double sum = 0;
  for (std::size_t i = 1; i < bytes.size(); ++i)
    sum += std::pow(static_cast<unsigned char>(bytes[i]) - static_cast<unsigned char>(bytes[i - 1]), 2);
  return sum / static_cast<double>(bytes.size());
}

TEST(DataDraw, DifficultyIsNoneByDefaultAndMakesImagesRougher) {
  const TemporaryFolder folder;
  const auto drawn = [&](const std::string& name, const std::string& difficulty) {
    EXPECT_EQ(draw(folder / name, {5, 200, 7}, {"--difficulty", difficulty}).code, 0);
    return file_text(folder / (name + "/test_batch.bin"));
  };
  ASSERT_EQ(draw(folder / "plain", {5, 200, 7}).code, 0);
  const std::string easy = drawn("0", "0"), middle = drawn("half", "0.5"), hard = drawn("1", "1");
  EXPECT_EQ(easy, file_text(folder / "plain/test_batch.bin"));
  EXPECT_LT(1.2 * roughness(easy), roughness(middle));
  EXPECT_LT(1.2 * roughness(middle), roughness(hard));
  for (std::size_t i = 0; i < easy.size(); i += kRecord) EXPECT_EQ(easy[i], hard[i]) << "a label moved";
  for (const char* wrong : {"-0.1", "1.1", "nan", "hard"})
    EXPECT_EQ(draw(folder / "wrong", {5, 5, 7}, {"--difficulty", wrong}).code, 2) << wrong;
}

TEST(DataDraw, NoImageComesTwice) {
  const TemporaryFolder folder;
  ASSERT_EQ(draw(folder / "set", {500, 500, 3}).code, 0);
  std::string all = file_text(folder / "set/test_batch.bin");
  for (int part = 1; part <= 5; ++part) all += file_text(folder / ("set/data_batch_" + std::to_string(part) + ".bin"));
  std::set<std::string> seen;
  for (std::size_t i = 0; i < all.size(); i += kRecord) seen.insert(all.substr(i + 1, kRecord - 1));
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(DataDraw, AFolderThatHoldsSomethingIsLeftAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mine") << "precious";
  const std::string itself = folder / ".";
  const Ended refused = draw(itself, {10, 10, 1});
  expect_misuse(refused, {"--force"});
  EXPECT_EQ(draw(itself, {10, 10, 1}, {"--force"}).code, 0);
  EXPECT_EQ(file_text(folder / "mine"), "precious");
  EXPECT_EQ(draw(folder / "mine", {10, 10, 1}).code, 2);
  EXPECT_EQ(draw(folder / "new", {0, 10, 1}).code, 2);
  EXPECT_EQ(draw("/proc/no/such", {10, 10, 1}).code, 1);
}

/// One weight per class and pixel, learned by stochastic gradient descent on the softmax cross-entropy.
class LinearClassifier {
 public:
  void learn(const std::string& record, double rate) {
    std::array<double, 10> share = scores(record);
    const double top = *std::max_element(share.begin(), share.end());
    double sum = 0;
    for (double& value : share) sum += value = std::exp(value - top);
    for (std::size_t c = 0; c < 10; ++c) {
      const double slope = share[c] / sum - (c == static_cast<unsigned char>(record[0]) ? 1 : 0);
      for (std::size_t i = 1; i < kRecord; ++i) weights_[c][i] -= static_cast<float>(rate * slope * value(record[i]));
    }
  }
  [[nodiscard]] std::array<double, 10> scores(const std::string& record) const {
    std::array<double, 10> sums{};
    for (std::size_t c = 0; c < 10; ++c)
      for (std::size_t i = 1; i < kRecord; ++i) sums[c] += static_cast<double>(weights_[c][i]) * value(record[i]);
    return sums;
  }

 private:
  static double value(char byte) { return static_cast<unsigned char>(byte) / 127.5 - 1; }
  std::vector<std::array<float, kRecord>> weights_ = std::vector<std::array<float, kRecord>>(10);
};

TEST(DataDraw, ALinearClassifierStaysBelowSixtyPercent) {
  const TemporaryFolder folder;
  ASSERT_EQ(draw(folder / "set", {2000, 500, 5}).code, 0);
  LinearClassifier classifier;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (int part = 1; part <= 5; ++part) {
      const std::string bytes = file_text(folder / ("set/data_batch_" + std::to_string(part) + ".bin"));
      for (std::size_t i = 0; i < bytes.size(); i += kRecord) classifier.learn(bytes.substr(i, kRecord), 5e-4);
    }
  const std::string bytes = file_text(folder / "set/test_batch.bin");
  int right = 0;
  for (std::size_t i = 0; i < bytes.size(); i += kRecord) {
    const auto scores = classifier.scores(bytes.substr(i, kRecord));
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    right += best == static_cast<unsigned char>(bytes[i]) ? 1 : 0;
  }
  EXPECT_LT(right / 500.0, 0.6);
}

}  // namespace
}  // namespace syncopate::test
