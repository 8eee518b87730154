// Decodes a photograph's file to normalised pixels: reads, cuts and scales in one pass each.
#include "input/picture/photograph.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/require.hpp"
#include "input/picture/read.hpp"
#include "input/picture/resize.hpp"

namespace syncopate::input {
namespace {

constexpr std::array kJpeg{std::byte{0xff}, std::byte{0xd8}, std::byte{0xff}};
constexpr std::array kPng{std::byte{0x89}, std::byte{'P'}, std::byte{'N'}, std::byte{'G'}};

/// Mean and standard deviation of ImageNet's training pictures, with colours from 0 to 1 (Krizhevsky et al. 2012
/// subtract the mean; published weights are trained with these numbers).
constexpr std::array kMean{0.485F, 0.456F, 0.406F}, kDeviation{0.229F, 0.224F, 0.225F};

class Photographs final : public Decoder {
 public:
  Photographs() {
    for (std::size_t c = 0; c < 3; ++c) {
      normaliser_.scale[c] = 1 / (255 * kDeviation[c]);
      normaliser_.offset[c] = -kMean[c] / kDeviation[c];
    }
  }

  void decode(std::span<const std::byte> record, const Look& look, float* out) override {
    base::require(look.side >= 1, "a picture of {} pixels each way; allowed: at least 1", look.side);
    const auto begins = [&](const auto& magic) {
      return record.size() > magic.size() && std::equal(magic.begin(), magic.end(), record.begin());
    };
    if (begins(kJpeg))
      read_jpeg(record, look, cut_);
    else if (begins(kPng))
      read_png(record, look, cut_);
    else
      throw Corrupt("is neither a JPEG nor a PNG (at byte 0)");
    resizer_.resize(cut_, {look.side, is_mirrored(look), normaliser_}, out);
  }

 private:
  Cut cut_;
  Resizer resizer_;
  Normaliser normaliser_;
};

}  // namespace

bool is_photograph(const std::string& name) {
  std::string ending = std::filesystem::path(name).extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return ending == ".jpeg" || ending == ".jpg" || ending == ".png";
}

std::unique_ptr<Decoder> photograph_decoder() { return std::make_unique<Photographs>(); }

}  // namespace syncopate::input
