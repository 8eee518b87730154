// Format idx: whole files give their pictures and labels, plain or gzipped, and damaged files are refused by name.
#include "input/idx.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "syncopate/error.hpp"
#include "syncopate/pipeline.hpp"
#include "thrown.hpp"

namespace syncopate::input::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kIdxSide = 6, kIdxPixels = kIdxSide * kIdxSide;

std::string idx_of(std::initializer_list<std::uint32_t> sizes, const std::string& values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes)
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(size >> shift));
  return bytes + values;
}

std::string zipped(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

/// The pixels of `pictures` pictures; all bytes occur.
std::string pixels_of(std::uint32_t pictures) {
  std::string pixels;
  for (std::uint32_t i = 0; i < pictures * kIdxPixels; ++i) pixels.push_back(static_cast<char>(7 * i));
  return pixels;
}

/// A set of 20 pictures to train on and 3 to evaluate on.
class Idx : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "idx.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    std::string labels;
    for (char i = 0; i < 20; ++i) labels.push_back(static_cast<char>(i % 10));
    write("train-images-idx3-ubyte", idx_of({20, kIdxSide, kIdxSide}, pixels_of(20)));
    write("train-labels-idx1-ubyte", idx_of({20}, labels));
    write("t10k-images-idx3-ubyte.gz", zipped(idx_of({3, kIdxSide, kIdxSide}, pixels_of(3))));
    write("t10k-labels-idx1-ubyte.gz", zipped(idx_of({3}, {9, 0, 5})));
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const std::string& file, const std::string& bytes) const {
    std::ofstream(folder / file, std::ios::binary) << bytes;
  }
  /// The error of opening the set, without the path of its folder.
  [[nodiscard]] std::string refusal() const {
    std::string text = syncopate::test::thrown([&] { (void)open_dataset(folder); });
    for (const std::string prefix = folder.string() + "/"; text.find(prefix) != std::string::npos;)
      text.erase(text.find(prefix), prefix.size());
    return text;
  }

  fs::path folder;
};

TEST_F(Idx, GivesPicturesAndLabelsAsStoredPlainOrGzipped) {
  EXPECT_TRUE(is_dataset(folder));
  const Dataset set = open_dataset(folder);
  EXPECT_EQ(set.format, "idx");
  EXPECT_EQ(set.side, 6);
  EXPECT_EQ(set.classes.size(), 10U);
  EXPECT_EQ(set.training->records(), 20U);
  EXPECT_EQ(set.evaluation->records(), 3U);
  EXPECT_EQ(set.training->label(13), 3);
  EXPECT_EQ(set.evaluation->label(0), 9);
  EXPECT_EQ(set.evaluation->label(2), 5);
  const std::string pixels = pixels_of(20);
  for (const auto& source : {set.training, set.evaluation}) {
    std::vector<std::byte> record(source->bytes(2));
    ASSERT_EQ(record.size(), kIdxPixels);
    source->read(2, record);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(record.data()), kIdxPixels),
              pixels.substr(2 * kIdxPixels, kIdxPixels));
  }
  EXPECT_EQ(set.training->name(2), "picture 2 of " + (folder / "train-images-idx3-ubyte").string());
}

TEST_F(Idx, RepeatsGreyInThreeChannelsNormalisedByTheTrainingPart) {
  const Dataset set = open_dataset(folder);
  double sum = 0, squares = 0;
  std::vector<float> out(3 * kIdxPixels);
  for (std::size_t record = 0; record < 20; ++record) {
    std::vector<std::byte> bytes(kIdxPixels);
    set.training->read(record, bytes);
    set.decoder()->decode(bytes, {.side = 6}, out.data());
    for (std::size_t i = 0; i < kIdxPixels; ++i) {
      EXPECT_EQ(out[i], out[kIdxPixels + i]);
      EXPECT_EQ(out[i], out[2 * kIdxPixels + i]);
      sum += out[i], squares += static_cast<double>(out[i]) * out[i];
    }
  }
  EXPECT_NEAR(sum / (20 * kIdxPixels), 0, 1e-5);
  EXPECT_NEAR(squares / (20 * kIdxPixels), 1, 1e-4);
  std::vector<float> large(3 * 64);
  std::vector<std::byte> bytes(kIdxPixels);
  set.decoder()->decode(bytes, {.side = 8, .augment = true, .seed = 1}, large.data());
  EXPECT_THROW(set.decoder()->decode(std::span(bytes).first(kIdxPixels - 1), {.side = 6}, out.data()), Corrupt);
}

TEST_F(Idx, NamesAFileThatIsMissing) {
  fs::remove(folder / "t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(refusal().find("t10k-labels-idx1-ubyte is missing: a folder of format idx has "), 0U) << refusal();
}

TEST_F(Idx, RefusesAWrongHeader) {
  const std::string file = "train-images-idx3-ubyte", pixels = pixels_of(20);
  write(file, idx_of({20}, pixels));
  EXPECT_EQ(refusal(), file + " begins with 00000801; allowed: 00000803 (idx, unsigned bytes, dimensions: 3)");
  write(file, std::string("\0\0\x0d\3", 4) + idx_of({20, kIdxSide, kIdxSide}, pixels).substr(4));
  EXPECT_EQ(refusal(), file + " begins with 00000d03; allowed: 00000803 (idx, unsigned bytes, dimensions: 3)");
  write(file, idx_of({20, kIdxSide, kIdxSide}, "").substr(0, 15));
  EXPECT_EQ(refusal(), file + " ends at byte 15 of its idx header of 16");
  write(file, "");
  EXPECT_EQ(refusal(), file + " ends at byte 0 of its idx header of 16");
}

TEST_F(Idx, RefusesSizesThatDoNotMatchTheContents) {
  const std::string file = "train-images-idx3-ubyte", pixels = pixels_of(20);
  write(file, idx_of({20, kIdxSide, kIdxSide}, pixels.substr(1)));
  EXPECT_EQ(refusal(), file + " has 735 bytes; allowed: the 736 that its header declares (20 x 6 x 6)");
  write(file, idx_of({20, kIdxSide, kIdxSide}, pixels + "x"));
  EXPECT_EQ(refusal(), file + " has 737 bytes; allowed: the 736 that its header declares (20 x 6 x 6)");
  write(file, idx_of({~0U, ~0U, ~0U}, pixels));
  EXPECT_EQ(refusal(),
            file + " declares 4294967295 at byte 8 and so more than 4 GiB of values; allowed: at most 4 GiB");
  write(file, idx_of({80, 3, 3}, pixels));
  EXPECT_EQ(refusal(), "train-labels-idx1-ubyte has 20 labels and " + file +
                           " has 80 pictures; allowed: one label for each picture");
  write(file, idx_of({20, 4, 9}, pixels));
  EXPECT_EQ(refusal(), file + " has pictures of 4 x 9 pixels; allowed: square ones of 1 to 4096 pixels each way");
  write(file, idx_of({20, 0, 0}, ""));
  EXPECT_EQ(refusal(), file + " has pictures of 0 x 0 pixels; allowed: square ones of 1 to 4096 pixels each way");
  write(file, idx_of({20, 1, 1}, std::string(20, 'x')));
  EXPECT_EQ(refusal(),
            "t10k-images-idx3-ubyte.gz has pictures of 6 pixels each way and " + file + " of 1; allowed: equal sizes");
}

TEST_F(Idx, RefusesALabelThatIsNoClass) {
  write("t10k-labels-idx1-ubyte.gz", zipped(idx_of({3}, {9, 0, 10})));
  EXPECT_EQ(refusal(), "t10k-labels-idx1-ubyte.gz: label 10 of picture 2 is not one of 0..9");
}

TEST_F(Idx, OfNoPicturesIsRefused) {
  write("train-images-idx3-ubyte", idx_of({0, kIdxSide, kIdxSide}, ""));
  write("train-labels-idx1-ubyte", idx_of({0}, ""));
  EXPECT_NE(refusal().find("no pictures to train on"), std::string::npos) << refusal();
}

TEST_F(Idx, RefusesBrokenGzipData) {
  const std::string file = "t10k-images-idx3-ubyte.gz", contents = idx_of({3, kIdxSide, kIdxSide}, pixels_of(3));
  const std::string whole = zipped(contents);
  for (std::size_t length = 2; length < whole.size(); ++length) {
    write(file, whole.substr(0, length));
    EXPECT_EQ(refusal(), file + " ends at byte " + std::to_string(length) + " within its gzip data");
  }
  write(file, whole + "xy");
  EXPECT_EQ(refusal(), file + " continues at byte " + std::to_string(whole.size()) + " after its gzip data");
  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;  // of the checksum
  write(file, damaged);
  EXPECT_NE(refusal().find("of its gzip data: incorrect data check"), std::string::npos) << refusal();
  write(file, zipped(contents + "x"));
  EXPECT_EQ(refusal(),
            file + " has more bytes when it is unzipped; allowed: the 124 that its header declares (3 x 6 x 6)");
  write(file, zipped(contents.substr(0, 123)));
  EXPECT_EQ(refusal(), file + " unzips to 123 bytes; allowed: the 124 that its header declares (3 x 6 x 6)");
  write(file, zipped(contents.substr(0, 7)));
  EXPECT_EQ(refusal(), file + " ends at byte 7 of its idx header of 16");
}

TEST_F(Idx, AllocatesNoMoreThanItsGzipDataCanHold) {
  const std::string file = "t10k-images-idx3-ubyte.gz", bomb = zipped(idx_of({1U << 20, 64, 64}, "few"));
  write(file, bomb);
  EXPECT_EQ(refusal(), file + " has " + std::to_string(bomb.size()) +
                           " compressed bytes, too few; allowed: the 4294967312 that its header declares "
                           "(1048576 x 64 x 64)");
  write(file, zipped(idx_of({40, 64, 64}, std::string(std::size_t{40} * 64 * 64, '\0'))));
  EXPECT_NE(refusal().find("has 3 labels and"), std::string::npos) << "the densest data are within the limit";
}

TEST_F(Idx, ItsVersionChangesWithAFile) {
  const std::uint64_t before = open_dataset(folder).training->version();
  EXPECT_EQ(open_dataset(folder).training->version(), before);
  fs::rename(folder / "train-labels-idx1-ubyte", folder / "labels");
  std::ifstream in(folder / "labels", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  write("train-labels-idx1-ubyte.gz", zipped(bytes));
  EXPECT_NE(open_dataset(folder).training->version(), before);
}

}  // namespace
}  // namespace syncopate::input::test
