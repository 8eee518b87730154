// Pictures without compression: three bytes per pixel in the record, four in a cut.
#include "input/picture/whole.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/bytes.hpp"
#include "syncopate/error.hpp"

namespace syncopate::input {
namespace {

constexpr std::array kMagic{std::byte{'S'}, std::byte{'Y'}, std::byte{'P'}, std::byte{'X'}};
constexpr std::size_t kHead = 16;

}  // namespace

std::vector<std::byte> whole_of(const Cut& picture, Kept kept) {
  const auto width = static_cast<std::uint32_t>(picture.size.width);
  const auto height = static_cast<std::uint32_t>(picture.size.height);
  const std::size_t pixels = std::size_t{width} * height;
  std::vector<std::byte> record(kHead + 3 * pixels);
  std::ranges::copy(kMagic, record.begin());
  base::put(record, 4, width);
  base::put(record, 8, height);
  base::put(record, 12, static_cast<std::uint32_t>(kept));
  for (std::size_t i = 0; i < pixels; ++i) std::memcpy(&record[kHead + 3 * i], &picture.pixels[4 * i], 3);
  return record;
}

bool is_whole(std::span<const std::byte> record) noexcept {
  return record.size() > kHead && std::equal(kMagic.begin(), kMagic.end(), record.begin());
}

void read_whole(std::span<const std::byte> record, const PictureTransform& look, Cut& cut) {
  const auto width = base::get<std::uint32_t>(record, 4), height = base::get<std::uint32_t>(record, 8);
  const auto kept = base::get<std::uint32_t>(record, 12);
  require_reasonable(width, height);
  if (const std::size_t right = kHead + std::size_t{3} * width * height; record.size() != right || kept > 1)
    throw Corrupt(fmt::format("has {} bytes and the form {} of {} x {} pixels; allowed: {} bytes, the form 0 or 1",
                              record.size(), kept, width, height, right));
  cut.size = {static_cast<int>(width), static_cast<int>(height)};
  cut.box = box_of(cut.size, look);
  const auto first = static_cast<std::size_t>(cut.box.y);
  const auto last = std::min<std::size_t>(height, static_cast<std::size_t>(std::ceil(cut.box.y + cut.box.height)));
  const bool keeps_all = static_cast<Kept>(kept) == Kept::all;
  if (!keeps_all) {
    cut.size.height = static_cast<int>(last - first);
    cut.box.y -= static_cast<double>(first);
  }
  cut.pixels.resize(std::size_t{4} * width * static_cast<std::size_t>(cut.size.height));
  const std::byte* from = record.data() + kHead + std::size_t{3} * width * first;
  std::uint8_t* to = cut.pixels.data() + (keeps_all ? std::size_t{4} * width * first : 0);
  for (std::size_t i = (last - first) * width; i > 0; --i, from += 3, to += 4) std::memcpy(to, from, 3);
}

}  // namespace syncopate::input
