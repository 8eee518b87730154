// Exif's orientation: a search in one directory of a TIFF header, whose offsets are all checked.
#include "input/picture/exif.hpp"

#include <cstdint>
#include <cstring>
#include <optional>

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

}  // namespace syncopate::input
