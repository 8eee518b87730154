// Decodes a photograph's file to normalised pixels: reads, cuts and scales in one pass each.
#include "input/picture/photograph.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/require.hpp"
#include "input/picture/resize.hpp"
#include "input/picture/whole.hpp"

namespace syncopate::input {

namespace {

constexpr char kBegin[] = {'E', 'x', 'i', 'f', 0, 0};
constexpr std::uint32_t kOrientation = 0x0112, kShort = 3, kEntry = 12;

/// Reads numbers of a TIFF in its byte order.
class Tiff final {
 public:
  Tiff(std::span<const std::byte> bytes, bool big) : bytes_(bytes), big_(big) {}
  [[nodiscard]] std::optional<std::uint32_t> number(std::uint64_t offset, unsigned width) const {
    if (offset > bytes_.size() || bytes_.size() - offset < width) return std::nullopt;
    std::uint32_t value = 0;
    for (unsigned i = 0; i < width; ++i) {
      const auto byte = std::to_integer<std::uint32_t>(bytes_[offset + i]);
      value |= byte << (8 * (big_ ? width - 1 - i : i));
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::span<const std::byte> segment) noexcept {
  if (segment.size() < sizeof kBegin + 8 || std::memcmp(segment.data(), kBegin, sizeof kBegin) != 0) return 1;
  const std::span<const std::byte> bytes = segment.subspan(sizeof kBegin);
  const bool big = bytes[0] == std::byte{'M'};
  const Tiff tiff(bytes, big);
  if (bytes[0] != bytes[1] || (!big && bytes[0] != std::byte{'I'}) || tiff.number(2, 2) != 42U) return 1;
  const std::uint64_t directory = *tiff.number(4, 4);
  const std::uint32_t entries = tiff.number(directory, 2).value_or(0);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + std::uint64_t{kEntry} * i;
    const auto tag = tiff.number(entry, 2);
    if (!tag) return 1;
    if (*tag != kOrientation || tiff.number(entry + 2, 2) != kShort) continue;
    const std::uint32_t value = tiff.number(entry + 8, 2).value_or(1);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

namespace {

constexpr std::array kJpeg{std::byte{0xff}, std::byte{0xd8}, std::byte{0xff}};
constexpr std::array kPng{std::byte{0x89}, std::byte{'P'}, std::byte{'N'}, std::byte{'G'}};

bool begins(std::span<const std::byte> record, std::span<const std::byte> magic) {
  return record.size() > magic.size() && std::equal(magic.begin(), magic.end(), record.begin());
}

class Photographs final : public Decoder {
 public:
  explicit Photographs(const Normalisation& by) {
    for (std::size_t c = 0; c < 3; ++c) {
      base::require(std::isfinite(by.mean[c]) && std::isfinite(by.deviation[c]) && by.deviation[c] > 0,
                    "colours with a mean of {} and a deviation of {}; allowed: finite means, deviations above 0",
                    by.mean[c], by.deviation[c]);
      normaliser_.scale[c] = 1 / (255 * by.deviation[c]);
      normaliser_.offset[c] = -by.mean[c] / by.deviation[c];
    }
  }

  void decode(std::span<const std::byte> record, const PictureTransform& look, float* out) override {
    base::require(look.side >= 1, "a picture of {} pixels each way; allowed: at least 1", look.side);
    if (begins(record, kJpeg))
      read_jpeg(record, look, cut_);
    else if (begins(record, kPng))
      read_png(record, look, cut_);
    else if (is_whole(record))
      read_whole(record, look, cut_);
    else
      throw Corrupt("is neither a JPEG nor a PNG (at byte 0)");
    resizer_.resize(cut_, {look.side, is_mirrored(look), normaliser_}, out);
  }

  std::vector<std::byte> whole(std::span<const std::byte> record, int least_side) override {
    base::require(least_side >= 1, "pictures of {} pixels each way; allowed: at least 1", least_side);
    bool is_turned = false;
    if (begins(record, kJpeg)) {
      if (!read_whole_jpeg(record, least_side, cut_, is_turned)) return {};
      return whole_of(cut_, is_turned ? Kept::all : Kept::rows_of_cut);
    }
    if (!begins(record, kPng)) return {};
    read_png(record, {.side = least_side}, cut_);
    return whole_of(cut_, Kept::all);
  }

 private:
  Cut cut_;
  Resizer resizer_;
  Normaliser normaliser_;
};

}  // namespace

std::unique_ptr<Decoder> picture_decoder(const Normalisation& normalisation) {
  return std::make_unique<Photographs>(normalisation);
}

}  // namespace syncopate::input
