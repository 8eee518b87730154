// Pictures become numbers: every kind of JPEG and PNG, and bytes of attackers.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "input/picture/cut.hpp"
#include "input/picture/photograph.hpp"
#include "input/pictures.hpp"
#include "sanitized.hpp"
#include "syncopate/error.hpp"

namespace syncopate::input::test {
namespace {

constexpr int kSide = 32;

/// The result in colours from 0 to 1.
std::vector<float> seen(const Bytes& file, PictureTransform look = {.side = kSide}) {
  const auto plane = static_cast<std::size_t>(look.side) * static_cast<std::size_t>(look.side);
  std::vector<float> out(3 * plane, NAN);
  picture_decoder()->decode(file, look, out.data());
  constexpr float mean[] = {0.485F, 0.456F, 0.406F}, deviation[] = {0.229F, 0.224F, 0.225F};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] * deviation[i / plane] + mean[i / plane];
  return out;
}

float at(const std::vector<float>& picture, int c, int x, int y) {
  return picture[static_cast<std::size_t>((c * kSide + y) * kSide + x)];
}

/// Expects the middle 7/8 of a drawing(): red grows to the right, green downwards.
void expect_drawing(const std::vector<float>& picture, double blue, const char* what) {
  for (const int x : {0, 7, 31})
    for (const int y : {0, 19, 31}) {
      EXPECT_NEAR(at(picture, 0, x, y), 1.0 / 16 + 7.0 / 8 * (x + 0.5) / kSide, 0.025) << what << x << ',' << y;
      EXPECT_NEAR(at(picture, 1, x, y), 1.0 / 16 + 7.0 / 8 * (y + 0.5) / kSide, 0.025) << what << x << ',' << y;
      EXPECT_NEAR(at(picture, 2, x, y), blue, 0.025) << what;
    }
}

TEST(Decoding, JpegOfAnySizeIsTheMiddleOfThePicture) {
  for (const int size : {20, 64, 96, 224, 600})
    for (const bool progressive : {false, true})
      expect_drawing(seen(jpeg_of(drawing(size, size), {.progressive = progressive})), 0.5, "jpeg ");
}

TEST(Decoding, CmykAndGreyAreColours) {
  expect_drawing(seen(jpeg_of(drawing(100, 100, 200), {.channels = 4})), 200 / 255.0, "cmyk ");
  const std::vector<float> grey = seen(jpeg_of(drawing(100, 100), {.channels = 1}));
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(at(grey, c, 16, 5), 0.5, 0.03);
}

TEST(Decoding, EveryExifOrientationIsTurnedUpright) {
  const Drawing upright = drawing(80, 64);
  for (std::uint8_t orientation = 1; orientation <= 8; ++orientation) {
    const bool swaps = orientation >= 5;
    // The definition: of the stored picture, where its row 0 and its column 0 are when it is seen.
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    const bool from_below = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    Drawing stored{swaps ? upright.height : upright.width, swaps ? upright.width : upright.height, {}};
    for (int y = 0; y < stored.height; ++y)
      for (int x = 0; x < stored.width; ++x) {
        const int across = swaps ? y : x, down = swaps ? x : y;
        const int seen_x = from_right ? upright.width - 1 - across : across;
        const int seen_y = from_below ? upright.height - 1 - down : down;
        const auto pixel = upright.rgb.begin() + 3 * (seen_y * upright.width + seen_x);
        stored.rgb.insert(stored.rgb.end(), pixel, pixel + 3);
      }
    const std::vector<float> wanted = seen(jpeg_of(upright));
    for (const bool big : {false, true}) {
      const std::vector<float> picture = seen(jpeg_of(stored, {.exif = exif_of(orientation, big)}));
      for (std::size_t i = 0; i < wanted.size(); i += 17) EXPECT_NEAR(picture[i], wanted[i], 0.03) << int{orientation};
    }
  }
}

TEST(Decoding, PngOfAnyDepthPaletteAndTransparency) {
  const Drawing drawn = drawing(100, 100);
  expect_drawing(seen(png_of({PNG_FORMAT_RGB, 100, 100}, drawn.rgb.data())), 0.5, "rgb ");
  std::vector<std::uint16_t> deep;  // linear light
  for (const std::uint8_t value : drawn.rgb)
    deep.push_back(static_cast<std::uint16_t>(
        65535 * (value < 11 ? value / 255.0 / 12.92 : std::pow((value / 255.0 + 0.055) / 1.055, 2.4))));
  expect_drawing(seen(png_of({PNG_FORMAT_LINEAR_RGB, 100, 100}, deep.data())), 0.5, "16 bits ");
  std::vector<std::uint8_t> palette, clear(4 * 100 * 100, 0);
  for (int i = 0; i < 256; ++i) palette.insert(palette.end(), {static_cast<std::uint8_t>(i), 0, 255});
  const std::vector<std::uint8_t> index(100 * 100, 51);
  const auto flat = seen(png_of({PNG_FORMAT_RGB_COLORMAP, 100, 100, palette.data()}, index.data()));
  EXPECT_NEAR(at(flat, 0, 3, 3), 0.2, 0.01);
  EXPECT_NEAR(at(flat, 2, 3, 3), 1, 0.01);
  EXPECT_NEAR(at(seen(png_of({PNG_FORMAT_RGBA, 100, 100}, clear.data())), 1, 9, 9), 1, 0.01) << "over white";
}

TEST(Decoding, RandomChangesAreTheSamplesOwn) {
  const Bytes file = jpeg_of(drawing(300, 200));
  const PictureTransform look{.side = 32, .augment = true, .seed = 3, .epoch = 2, .sample = 7};
  PictureTransform other = look;
  other.epoch = 3;
  EXPECT_EQ(seen(file, look), seen(file, look));
  EXPECT_NE(seen(file, look), seen(file, other));
  int mirrored = 0;
  for (std::uint32_t sample = 0; sample < 1000; ++sample) {
    const PictureTransform one{.side = 32, .augment = true, .seed = 3, .epoch = 2, .sample = sample};
    const Box box = box_of({300, 200}, one);
    EXPECT_GE(box.x, 0);
    EXPECT_GE(box.y, 0);
    EXPECT_LE(box.x + box.width, 300);
    EXPECT_LE(box.y + box.height, 200);
    EXPECT_GE(box.width * box.height, 0.075 * 300 * 200);
    mirrored += is_mirrored(one) ? 1 : 0;
    const std::vector<float> picture = seen(file, one);
    EXPECT_EQ(at(picture, 0, 31, 16) < at(picture, 0, 0, 16), is_mirrored(one)) << "red grows to the right";
    const double left = at(picture, 0, is_mirrored(one) ? 31 : 0, 16),
                 right = at(picture, 0, is_mirrored(one) ? 0 : 31, 16);
    EXPECT_NEAR(left, (box.x + box.width / 64) / 300, 0.03);
    EXPECT_NEAR(right, (box.x + box.width - box.width / 64) / 300, 0.03);
  }
  EXPECT_NEAR(mirrored, 500, 80);  // five standard deviations
}

// In half of all cuts both coordinates are in the same half of their ranges.
TEST(Decoding, TheCoordinatesOfARandomCutAreIndependent) {
  int alike = 0;
  for (std::uint32_t sample = 0; sample < 2000; ++sample) {
    const Box box = box_of({300, 200}, {.side = 32, .augment = true, .seed = 3, .epoch = 2, .sample = sample});
    alike += (2 * box.x < 300 - box.width) == (2 * box.y < 200 - box.height) ? 1 : 0;
  }
  EXPECT_NEAR(alike, 1000, 150);
}

TEST(Decoding, MirroringCanBeLeftOutOfTheRandomChanges) {
  const Bytes file = jpeg_of(drawing(300, 200));
  for (std::uint32_t sample = 0; sample < 20; ++sample) {
    const PictureTransform look{.side = 32, .augment = true, .mirror = false, .sample = sample};
    const std::vector<float> picture = seen(file, look);
    EXPECT_LT(at(picture, 0, 0, 16), at(picture, 0, 31, 16)) << "red grows to the right";
    const PictureTransform usual{.side = 32, .augment = true, .sample = sample};
    EXPECT_EQ(box_of({300, 200}, look).x, box_of({300, 200}, usual).x) << "the crop is the same";
  }
}

TEST(Decoding, ColoursAreNormalisedAsGiven) {
  const Bytes file = jpeg_of(drawing(64, 64));
  std::vector<float> usual(3 * 32 * 32), own(usual.size());
  picture_decoder()->decode(file, {.side = 32}, usual.data());
  picture_decoder({.mean = {0, 0.5F, 1}, .deviation = {1, 2, 0.5F}})->decode(file, {.side = 32}, own.data());
  const Normalisation imagenet;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::size_t c = i / (32 * 32);
    const float colour = usual[i] * imagenet.deviation[c] + imagenet.mean[c];
    const float mean[] = {0, 0.5F, 1}, deviation[] = {1, 2, 0.5F};
    EXPECT_NEAR(own[i], (colour - mean[c]) / deviation[c], 1e-5);
  }
  EXPECT_THROW((void)picture_decoder({.deviation = {1, 0, 1}}), Misuse);
  EXPECT_THROW((void)picture_decoder({.mean = {NAN, 0, 0}}), Misuse);
}

TEST(Decoding, TruncatedFilesAreRefusedAtEveryLength) {
  std::vector<Bytes> files{jpeg_of(drawing(40, 40)), jpeg_of(drawing(40, 40), {.progressive = true}),
                           png_of({PNG_FORMAT_RGB, 40, 40}, drawing(40, 40).rgb.data())};
  files[2].resize(files[2].size() - 12);  // the end marker, which the decoder does not need: all pixels precede it
  EXPECT_NO_THROW((void)seen(files[2]));
  for (const Bytes& file : files)
    for (std::size_t length = 0; length < file.size(); ++length)
      EXPECT_THROW((void)seen(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length))), Corrupt)
          << length << " of " << file.size();
}

TEST(Decoding, DamageBelowTheCutIsFoundWhateverTheCut) {
  Bytes file = jpeg_of(drawing(200, 200));
  file.resize(file.size() - file.size() / 8);
  for (std::uint32_t sample = 0; sample < 50; ++sample)
    EXPECT_THROW((void)seen(file, {.side = 32, .augment = true, .sample = sample}), Corrupt);
}

TEST(Decoding, FlippedBitsAreAnsweredOrRefused) {
  std::minstd_rand random(1);
  const std::vector<Bytes> files{jpeg_of(drawing(64, 48), {.exif = exif_of(6)}),
                                 jpeg_of(drawing(64, 48), {.progressive = true}),
                                 png_of({PNG_FORMAT_RGBA, 30, 20}, std::vector<std::uint8_t>(2400, 77).data())};
  int refused = 0;
  for (int i = 0; i < (syncopate::test::kSanitized ? 3000 : 30'000); ++i) {
    Bytes file = files[static_cast<std::size_t>(i) % files.size()];
    for (int flips = 1 + i % 3; flips > 0; --flips) file[random() % file.size()] ^= std::byte{1} << (random() % 8);
    try {
      for (const float value : seen(file)) ASSERT_TRUE(std::isfinite(value));
    } catch (const Corrupt&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000 / (syncopate::test::kSanitized ? 10 : 1));
}

TEST(Decoding, HugeDeclaredSizesAreRefusedBeforeMemoryIsTaken) {
  Bytes jpeg = jpeg_of(drawing(16, 16));
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i)
    if (jpeg[i] == std::byte{0xff} && jpeg[i + 1] == std::byte{0xc0})
      for (const std::size_t byte : {5U, 6U, 7U, 8U}) jpeg[i + byte] = std::byte{0xf0};
  EXPECT_THROW((void)seen(jpeg), Corrupt);
  EXPECT_THROW(require_reasonable(1 << 14, 1 << 13), Corrupt);
  EXPECT_THROW(require_reasonable(UINT64_MAX, UINT64_MAX), Corrupt);
  for (const auto& [width, height] : {std::pair<std::uint64_t, std::uint64_t>{0, 5}, {5, 0}, {5, 13'421'773}}) {
    EXPECT_THROW(require_reasonable(width, height), Corrupt) << width << " x " << height;
    EXPECT_THROW(require_reasonable(height, width), Corrupt) << height << " x " << width;
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 26;  // 5 x 13 421 773 is one more
  EXPECT_NO_THROW(require_reasonable(1 << 13, 1 << 13));
  EXPECT_NO_THROW(require_reasonable(kMost, 1));
  EXPECT_NO_THROW(require_reasonable(1, kMost));
  EXPECT_THROW(require_reasonable(std::uint64_t{1} << 63, 2), Corrupt) << "the product is 0 in 64 bits";
  EXPECT_THROW(require_reasonable(2, std::uint64_t{1} << 63), Corrupt);
}

TEST(Decoding, GivesPicturesOfOnePixelAndMore) {
  const Bytes file = jpeg_of(drawing(16, 16));
  float one[3];
  EXPECT_NO_THROW(picture_decoder()->decode(file, {.side = 1}, one));
  EXPECT_THROW(picture_decoder()->decode(file, {.side = 0}, one), Misuse);
}

TEST(Exif, GarbageStatesNoOrientation) {
  const Bytes whole = exif_of(6);
  EXPECT_EQ(exif_orientation(whole), 6);
  for (std::size_t length = 0; length < 26; ++length)
    EXPECT_EQ(exif_orientation(std::span(whole).first(length)), 1) << length;
  EXPECT_EQ(exif_orientation(std::span(whole).first(26)), 6) << "its value is the last two bytes";
  Bytes none = whole;
  none[14] = std::byte{0};
  EXPECT_EQ(exif_orientation(none), 1) << "the directory has no entries";
  EXPECT_EQ(exif_orientation(exif_of(0)), 1);
  EXPECT_EQ(exif_orientation(exif_of(9)), 1);
  std::minstd_rand random(2);
  for (int i = 0; i < 100'000; ++i) {
    Bytes bytes = exif_of(6, i % 2 == 0);
    for (int changes = 0; changes < 3; ++changes)
      bytes[6 + random() % (bytes.size() - 6)] = static_cast<std::byte>(random());
    const int found = exif_orientation(bytes);
    EXPECT_TRUE(found >= 1 && found <= 8);
  }
}

}  // namespace
}  // namespace syncopate::input::test
