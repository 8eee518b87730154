// Levels: unit, quantisation and packing of one group.
#include "compress/quantised/levels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernel/pack.hpp"
#include "kernel/quantize.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::quantised {

namespace {

constexpr double kLeastUnit = 0x1p-100;

float rounded_unit(double unit, unsigned highest) {
  if (!std::isfinite(unit)) return std::numeric_limits<float>::quiet_NaN();
  if (unit < kLeastUnit) return 0;
  return static_cast<float>(std::min(unit, double{kernel::largest_unit(highest)}));
}

/// Whether rounded_unit can return `unit`: NaN, or finite without a sign.
bool is_unit(float unit) { return std::isnan(unit) || (std::isfinite(unit) && !std::signbit(unit)); }

class LevelQuantiser final : public Quantiser {
 public:
  explicit LevelQuantiser(const LevelCoding& coding) : coding_(coding) {}

  [[nodiscard]] std::size_t group() const noexcept override { return coding_.group; }

  [[nodiscard]] std::size_t bytes(std::size_t elements) const noexcept override {
    const std::size_t block_bytes = has_trits() ? kernel::kTritBlock / 5 : coding_.bits * kernel::kBitBlock / 8;
    return sizeof(float) + blocks_of(elements) * block_bytes;
  }

  void encode(std::span<const float> group, std::uint64_t word, std::byte* into) const override {
    const kernel::LevelScale scale{.unit = rounded_unit(coding_.unit(group, coding_.highest), coding_.highest),
                                   .highest = coding_.highest,
                                   .is_dithered = coding_.is_stochastic,
                                   .word = word};
    std::memcpy(into, &scale.unit, sizeof scale.unit);
    Fields fields;
    kernel::quantize(scale, group.data(), group.size(), fields);
    const std::size_t blocks = blocks_of(group.size()), room = blocks * block();
    std::memset(fields + group.size(), 0, room - group.size());
    if (has_trits()) return kernel::pack_trits(fields, blocks, into + sizeof(float));
    kernel::pack_bits(packing(), fields, blocks, into + sizeof(float));
  }

  void decode(const std::byte* from, std::span<float> group) const override {
    kernel::LevelScale scale{.highest = coding_.highest};
    std::memcpy(&scale.unit, from, sizeof scale.unit);
    Fields fields;
    const std::size_t blocks = blocks_of(group.size());
    const bool are_levels = has_trits() ? kernel::unpack_trits(from + sizeof(float), blocks, fields)
                                        : kernel::unpack_bits(packing(), from + sizeof(float), blocks, fields);
    if (!are_levels || !is_unit(scale.unit)) throw Corrupt("a quantised group has a unit or a level out of range");
    kernel::dequantize(scale, fields, group.size(), group.data());
  }

 private:
  using Fields = std::uint8_t[kMostGroup];

  [[nodiscard]] bool has_trits() const noexcept { return coding_.bits == 0; }
  [[nodiscard]] std::size_t block() const noexcept { return has_trits() ? kernel::kTritBlock : kernel::kBitBlock; }
  [[nodiscard]] std::size_t blocks_of(std::size_t elements) const noexcept {
    return (elements + block() - 1) / block();
  }
  [[nodiscard]] kernel::BitFields packing() const noexcept {
    return {coding_.bits, static_cast<std::uint8_t>(2 * coding_.highest)};
  }

  const LevelCoding coding_;
};

}  // namespace

std::unique_ptr<Quantiser> level_quantiser(const LevelCoding& coding) {
  return std::make_unique<LevelQuantiser>(coding);
}

}  // namespace syncopate::compress::quantised
