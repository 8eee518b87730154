// Whole: the decoded form of a picture gives the same bits as its file, also through the cache of several ranks.
#include "input/picture/whole.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "input/pictures.hpp"
#include "ranks.hpp"
#include "syncopate/cache.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::input::test {
namespace {

namespace fs = std::filesystem;

std::vector<float> decoded(const Bytes& record, const PictureTransform& look) {
  std::vector<float> out(3 * static_cast<std::size_t>(look.side) * static_cast<std::size_t>(look.side));
  picture_decoder()->decode(record, look, out.data());
  return out;
}

/// Every pixel is drawn, so that neighbouring rows differ.
Drawing noise(int width, int height) {
  Drawing drawn{width, height, {}};
  const base::CounterRandom random{9};
  for (std::uint64_t i = 0; i < std::uint64_t{3} * static_cast<unsigned>(width * height); ++i)
    drawn.rgb.push_back(static_cast<std::uint8_t>(random.bits(i)));
  return drawn;
}

void expect_same(const Bytes& file, int least_side, const std::string& what) {
  const Bytes whole = picture_decoder()->whole(file, least_side);
  ASSERT_FALSE(whole.empty()) << what;
  for (const int side : {least_side, 2 * least_side})
    for (std::uint32_t sample = 0; sample < 12; ++sample) {
      const PictureTransform look{.side = side, .augment = sample > 0, .seed = 3, .epoch = 1, .sample = sample};
      EXPECT_EQ(decoded(whole, look), decoded(file, look)) << what << ", side " << side << ", sample " << sample;
    }
}

TEST(Whole, GivesTheBitsOfTheFile) {
  for (const auto& [width, height] : {std::pair{1, 1}, {17, 40}, {63, 33}, {50, 61}, {63, 64}, {200, 63}}) {
    const Drawing drawn = noise(width, height);
    const std::string size = std::to_string(width) + " x " + std::to_string(height);
    for (const bool progressive : {false, true})
      for (const int channels : {1, 3, 4})
        expect_same(jpeg_of(drawn, {.quality = 85, .channels = channels, .progressive = progressive}), 32,
                    "jpeg of " + size);
    expect_same(png_of({PNG_FORMAT_RGB, width, height}, drawn.rgb.data()), 32, "png of " + size);
  }
  for (std::uint8_t orientation = 1; orientation <= 8; ++orientation)
    expect_same(jpeg_of(noise(60, 44), {.exif = exif_of(orientation)}), 32,
                "orientation " + std::to_string(orientation));
}

/// Boxes of cuts begin at any fraction of a row and of a column.
TEST(Whole, GivesTheBitsOfTheFileForManyCuts) {
  for (const auto& [width, height] : {std::pair{47, 61}, {61, 63}}) {
    const Bytes file = jpeg_of(noise(width, height)), whole = picture_decoder()->whole(file, 32);
    for (std::uint32_t sample = 0; sample < 400; ++sample) {
      const PictureTransform look{.side = 32, .augment = true, .seed = 5, .epoch = 0, .sample = sample};
      ASSERT_EQ(decoded(whole, look), decoded(file, look)) << width << " x " << height << ", sample " << sample;
    }
  }
}

TEST(Whole, IsEmptyWhereACutIsDecodedAtASmallerScale) {
  const Bytes file = jpeg_of(noise(64, 70));
  EXPECT_TRUE(picture_decoder()->whole(file, 32).empty());
  EXPECT_FALSE(picture_decoder()->whole(file, 33).empty());
  EXPECT_THROW((void)picture_decoder()->whole(file, 0), Misuse);
  const Bytes png = png_of({PNG_FORMAT_RGB, 64, 70}, noise(64, 70).rgb.data());
  EXPECT_FALSE(picture_decoder()->whole(png, 8).empty()) << "a PNG is decoded at its size only";
  EXPECT_TRUE(picture_decoder()->whole(picture_decoder()->whole(png, 8), 8).empty());
}

TEST(Whole, RefusesADamagedFileAsDecodingDoes) {
  for (Bytes file : {jpeg_of(noise(40, 40)), png_of({PNG_FORMAT_RGB, 40, 40}, noise(40, 40).rgb.data()), Bytes(50)}) {
    file.resize(file.size() * 3 / 4);
    const std::string refusal = syncopate::test::thrown<Corrupt>([&] { return decoded(file, {.side = 32}); });
    EXPECT_NE(refusal, "no error");
    try {
      EXPECT_TRUE(picture_decoder()->whole(file, 32).empty());
      EXPECT_EQ(file.size(), 37U) << "neither a JPEG nor a PNG: decoding refuses it";
    } catch (const Corrupt& error) {
      EXPECT_EQ(error.what(), refusal);
    }
  }
}

TEST(Whole, ThatIsDamagedIsRefused) {
  const Bytes right = picture_decoder()->whole(jpeg_of(noise(20, 10)), 32);
  ASSERT_EQ(right.size(), 16U + 3 * 20 * 10);
  for (std::size_t length = 0; length < right.size(); ++length)
    EXPECT_THROW((void)decoded(Bytes(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(length)), {.side = 32}),
                 Corrupt)
        << length;
  for (const auto& [offset, value] : {std::pair{4, 21U}, {4, 0U}, {8, 0xffffffffU}, {12, 2U}}) {
    Bytes wrong = right;
    base::put(wrong, static_cast<std::size_t>(offset), value);
    EXPECT_THROW((void)decoded(wrong, {.side = 32}), Corrupt) << offset;
  }
}

constexpr std::size_t kBatch = 8;
constexpr int kSmall = 16;

/// 30 pictures, of which every fifth is too large for a decoded form. The steps of epoch 1 have larger pictures.
class DecodedTier : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "whole.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    for (int i = 0; i < 30; ++i)
      write_file(folder / "train" / (i % 2 == 0 ? "ant" : "bee") / (std::to_string(100 + i) + ".JPEG"),
                 jpeg_of(i % 5 == 0 ? noise(40 + i, 50) : noise(18 + i % 13, 40 - i)));
    for (const char* name_of_class : {"ant", "bee"})
      write_file(folder / "val" / name_of_class / "0.JPEG", jpeg_of(noise(20, 20)));
  }
  void TearDown() override { fs::remove_all(folder); }

  using Taken = std::map<std::pair<std::uint64_t, int>, std::vector<float>>;  ///< by step and rank
  struct Run {
    int ranks = 1;
    std::uint64_t encoded = 0, decoded = 0;
    OnCorrupt on_corrupt = OnCorrupt::skip;
  };

  /// The pictures of three epochs, and in `last` the counters of the last epoch, summed over ranks.
  Taken take(const Run& run, cache::Counters& last) const {
    Taken taken;
    std::mutex mutex;
    syncopate::test::on_groups(run.ranks, [&](Group& group) {
      const Dataset set = open_dataset(folder);
      auto owned = cache::Cache::form(group, *set.training, 5,
                                      {.memory_bytes = run.encoded, .decoded_bytes = run.decoded, .log = {}});
      const cache::Cache& cache = *owned;
      Pipeline pipeline(set, set.training, std::move(owned),
                        {.threads = 2, .augment = true, .seed = 5, .on_corrupt = run.on_corrupt, .least_side = kSmall});
      pipeline.start({}, [](const Progress& at) {
        return at.epoch < 3 ? std::optional(StepPlan{kBatch, at.epoch == 1 ? 2 * kSmall : kSmall}) : std::nullopt;
      });
      for (std::uint64_t step = 0; step < 3 * 4; ++step) {
        const PictureBatch batch = pipeline.next();
        const std::lock_guard lock(mutex);
        const std::size_t floats = batch.count() * 3 * static_cast<std::size_t>(batch.side * batch.side);
        taken[{step, group.rank()}] = {batch.pixels.get(), batch.pixels.get() + floats};
      }
      const std::lock_guard lock(mutex);
      last.decoded += cache.counters().back().decoded;
      last.origin.records += cache.counters().back().origin.records;
    });
    return taken;
  }

  fs::path folder;
};

TEST_F(DecodedTier, GivesTheSameBatchesOnOneTwoAndFourRanks) {
  for (const int ranks : {1, 2, 4}) {
    cache::Counters none, some, all;
    const Taken plain = take({.ranks = ranks, .encoded = 1 << 20}, none);
    EXPECT_EQ(plain.size(), 12U * static_cast<unsigned>(ranks));
    EXPECT_EQ(take({.ranks = ranks, .encoded = 1 << 20, .decoded = 6000}, some), plain);
    EXPECT_EQ(take({.ranks = ranks, .encoded = 1 << 20, .decoded = 1 << 20}, all), plain);
    EXPECT_EQ(none.decoded, 0U);
    EXPECT_GT(some.decoded, 0U);
    EXPECT_LT(some.decoded, all.decoded);
    EXPECT_EQ(all.decoded, 24U) << ranks << " ranks: all but the large ones";
    EXPECT_EQ(all.origin.records, 0U);
  }
}

TEST_F(DecodedTier, RefusesADamagedPictureWhereItIsUsedAndNamesIt) {
  const fs::path damaged = folder / "train/bee/103.JPEG";
  fs::resize_file(damaged, fs::file_size(damaged) * 3 / 4);
  cache::Counters ignored, last;
  const Taken skipped = take({.ranks = 2, .encoded = 1 << 20, .decoded = 1 << 20}, last);
  EXPECT_EQ(skipped, take({.ranks = 2, .encoded = 1 << 20}, ignored)) << "the next picture replaces it";
  EXPECT_EQ(last.decoded, 23U);
  syncopate::test::expect_thrown<Corrupt>(
      [&] { take({.encoded = 1 << 20, .decoded = 1 << 20, .on_corrupt = OnCorrupt::stop}, ignored); },
      {"bee/103.JPEG"});
}

}  // namespace
}  // namespace syncopate::input::test
